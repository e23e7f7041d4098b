// Writing: what will be written is shown first, and written only as it was shown.

import { request, store } from "./store.js";
import { clock, say } from "./words.js";

const byId = (id) => document.getElementById(id);
const box = byId("write-box");
const SIGNS = { write: "new", change: "changed", stay: "as it is", custom: "set by hand, left alone", fail: "cannot be written" };
const REMEMBERED = "c5-outputs";
let isOpen = false;
let shown = "";
let wanted = null; // the question that comes next
let isAsking = false; // one question at a time: several might arrive in another order
let isWaiting = false; // for the server to take the last one
let timer = 0;

export function startWriting() {
  byId("write-cancel").addEventListener("click", () => box.close());
  byId("write-now").addEventListener("click", () => {
    byId("write-now").disabled = true;
    request("write", { plan: store.shoot.plan.id }).catch(refused);
  });
  box.addEventListener("close", () => {
    isOpen = false;
    clearTimeout(timer);
  });
  box.addEventListener("change", plan);
}

export function openWriting() {
  if (isOpen) return;
  isOpen = true;
  shown = "";
  const before = (localStorage.getItem(REMEMBERED) || "").split(",");
  const outputs = Object.entries(store.shoot.outputs);
  byId("outputs").replaceChildren(
    Object.assign(document.createElement("legend"), { textContent: "What" }),
    ...outputs.map(([name, help]) => {
      const [label, input] = [document.createElement("label"), document.createElement("input")];
      Object.assign(input, { type: "checkbox", value: name, name: "output", checked: before.includes(name) });
      label.append(input, ` ${help}`);
      return label;
    }),
  );
  byId("plan-text").textContent = "Choose what to write.";
  byId("plan-steps").replaceChildren();
  byId("write-now").disabled = true;
  box.showModal();
  plan();
}

const chosenOutputs = () => [...box.querySelectorAll("[name=output]:checked")].map((input) => input.value);

function plan() {
  clearTimeout(timer);
  const outputs = chosenOutputs();
  isWaiting = outputs.length > 0;
  localStorage.setItem(REMEMBERED, outputs.join(","));
  byId("write-now").disabled = true;
  byId("plan-steps").replaceChildren();
  if (!outputs.length) {
    byId("plan-text").textContent = "Choose what to write.";
    return;
  }
  byId("plan-text").textContent = "Finding out what would be written …";
  shown = "";
  wanted = { outputs, which: box.querySelector("[name=which]:checked").value, replace: byId("replace").checked };
  if (!isAsking) askForPlan();
}

async function askForPlan() {
  let refusal = null;
  isAsking = true;
  while (wanted) {
    const question = wanted;
    wanted = null;
    refusal = await request("plan", question).then(() => null, (error) => error);
  }
  isAsking = false;
  if (!refusal) {
    isWaiting = false;
    followPlan(store.shoot.plan);
  } else if (isOpen) {
    if (refusal.status === 409) timer = setTimeout(plan, 500);
    else refused(refusal);
  }
}

function refused(error) {
  byId("plan-text").textContent = error.message;
  say(error.message);
}

export function followPlan(known) {
  if (!isOpen || isWaiting || !chosenOutputs().length) return;
  if (!known) plan(); // lights have changed since: it is no longer what would be written
  else show(known);
}

function show(plan) {
  const work = store.shoot.work.find(({ what }) => what === "planning" || what === "writing");
  const key = `${plan.id} ${plan.state}`;
  if (plan.state === "planning" || plan.state === "writing") {
    const verb = plan.state === "planning" ? "Finding out what would be written" : "Writing";
    byId("plan-text").textContent = `${verb}${work ? ` ${work.done} of ${work.total}, ${clock(work.left)}` : " …"}`;
    return;
  }
  if (shown === key) return;
  shown = key;
  byId("plan-text").textContent = [summary(plan), plan.note, plan.message].filter(Boolean).join(". ");
  byId("plan-text").classList.toggle("trouble", plan.state === "stopped" || plan.counts.fail > 0);
  byId("write-now").disabled = plan.state !== "ready" || !(plan.counts.write + plan.counts.change);
  byId("plan-steps").replaceChildren(...plan.steps.map(row));
  if (plan.state === "written") say(summary(plan));
}

function summary({ counts, state }) {
  const isDone = state === "written" || state === "stopped";
  const parts = [];
  const made = counts.write + counts.change;
  if (isDone) parts.push(`${state === "stopped" ? "Stopped" : `${made} written`}`);
  else parts.push(made ? `${counts.write} new, ${counts.change} changed: nothing is written yet` : "There is nothing to write");
  if (counts.stay) parts.push(`${counts.stay} as they are`);
  if (counts.custom) parts.push(`${counts.custom} set by hand, left alone`);
  if (counts.fail) parts.push(`${counts.fail} cannot be written`);
  return parts.join("; ");
}

function row([action, place, message]) {
  const line = document.createElement("p");
  line.className = action;
  const [what, where] = [document.createElement("span"), document.createElement("span")];
  what.textContent = SIGNS[action];
  where.textContent = message || place;
  line.append(what, where);
  return line;
}
