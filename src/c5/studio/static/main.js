// The page: what is shown, the keys, and what is asked of the server.

import { describe, lay, move, neighbor, reveal, show, startGrid } from "./grid.js";
import { closeLoupe, compare, loupe, measurePatch, movePatch, openLoupe, redraw, showPhoto, showWhy, startLoupe, startPicking, stopPicking, zoom } from "./loupe.js";
import { balanceFor, draw, isSame, load, lookOf } from "./picture.js";
import { act, active, arrange, byTime, chosen, groupOf, indexOf, onChange, poll, request, select, showKelvin, showTint, store } from "./store.js";
import { clock, say } from "./words.js";
import { followPlan, openWriting, startWriting } from "./writing.js";

const byId = (id) => document.getElementById(id);
const sliders = ["warmer", "shift", "strength"].map(byId);
const [warmer, shift, strength] = sliders;
const WORDS = { previews: "Reading previews", lights: "Finding lights", groups: "Grouping", thumbnails: "Developing thumbnails", planning: "Planning", writing: "Writing" };
const FASTEST = 700;
const SLOWEST = 2000;

const KEYS = [
  ["← → ↑ ↓, Home, End, PgUp, PgDn", "go from photograph to photograph; with Shift, select"],
  ["Enter or Space", "look at it large; Escape goes back"],
  ["[ ]", "colder, warmer; with Shift, in larger steps"],
  ["; '", "greener, more magenta"],
  ["− =", "less and more strength"],
  ["G, R", "the same correction for the group, for the rest"],
  ["0", "no correction"],
  ["A, Shift+A", "it looks right; the whole group does"],
  ["P", "pick a gray patch with a rectangle: arrow keys, + and −, Enter"],
  ["B, S", "as shot; as shot beside balanced"],
  ["F", "full size, and back"],
  ["H", "the heat map, and what the estimate is based on"],
  ["M", "name the group; another group's name joins the two"],
  ["N, J", "a new group from the selection; join with the group before"],
  ["O", "order: by group, doubtful first, by time"],
  ["Ctrl+Z, Ctrl+Y", "undo, redo"],
  ["W", "write: what will be written is shown first"],
  ["?", "these keys"],
];

// What the sliders say

let busy = false; // somebody holds a slider
let miniPicture = null;

const readSliders = () => ({ strength: strength.value / 100, warmer: Number(warmer.value), shift: Number(shift.value) });

function showSliders(look) {
  if (busy) return;
  warmer.value = look.warmer;
  shift.value = look.shift;
  strength.value = Math.round(look.strength * 100);
  tellSliders(look);
}

function tellSliders(look) {
  const photo = active();
  const picture = loupe.isOpen ? loupe.picture : miniPicture;
  let [kelvin, tint] = [photo?.kelvin, photo?.tint];
  if (picture && picture.id === photo?.id) {
    const { place } = balanceFor(picture, look);
    if (place) [kelvin, tint] = [Math.round(1e6 / place.mired), Math.round(place.tint)];
  }
  const signed = (value, low, high) => (value ? ` · ${Math.abs(value)} ${value > 0 ? high : low}` : "");
  byId("warmer-out").textContent = kelvin ? `${showKelvin(kelvin)}${signed(look.warmer, "colder", "warmer")}` : "";
  byId("shift-out").textContent = kelvin ? `${showTint(tint)}${signed(look.shift, "greener", "more magenta")}` : "";
  byId("strength-out").textContent = `${Math.round(look.strength * 100)} %`;
}

let asked = null;

function followSliders(event) {
  busy = true;
  const started = event?.timeStamp || performance.now();
  if (asked) return;
  asked = requestAnimationFrame(() => {
    asked = null;
    const look = readSliders();
    if (loupe.isOpen) redraw(look, true);
    else if (miniPicture) draw(miniPicture, byId("mini"), look, { moving: true });
    tellSliders(look);
    performance.measure("slider", { start: started, end: performance.now() });
  });
}

function commit() {
  busy = false;
  const ids = chosen();
  if (!ids.length) return;
  act({ do: "adjust", ids, ...wish() }).catch(tell);
}

// In Firefox, a slider that is put back where it was tells of no change.
function release() {
  const photo = active();
  if (busy && photo && isSame(readSliders(), lookOf(photo))) busy = false;
}

const wish = () => {
  const look = readSliders();
  return { strength: look.strength, warmer: look.warmer, tint: look.shift };
};

let nudging = 0;

function nudge(slider, by) {
  if (slider.disabled) return;
  slider.value = Number(slider.value) + by;
  followSliders();
  clearTimeout(nudging);
  nudging = setTimeout(commit, 350);
}

// What the panel says

function showPanel() {
  const photo = active();
  const many = store.selected.size;
  byId("name").textContent = photo ? (many > 1 ? `${many} selected` : photo.name) : "Nothing selected";
  const isReady = Boolean(photo?.known);
  sliders.forEach((slider) => (slider.disabled = !isReady || !photo.movable));
  for (const id of ["to-group", "to-rest", "reset", "agree", "agree-group"]) byId(id).disabled = !isReady;
  for (const id of ["name-group", "new-group", "join-group"]) byId(id).disabled = !isReady || !store.shoot.grouped;
  byId("release").hidden = !photo?.reference;
  if (!photo) return;
  const state = photo.failure || (photo.known ? { model: "its own light", set: "the light of its group", reference: "by a gray patch", hand: "corrected by you" }[photo.by] || photo.by : "its light is being found");
  byId("facts").textContent = [state, photo.doubt === undefined ? "" : `${photo.doubtful ? "doubtful, " : ""}±\u00a0${photo.doubt.toFixed(1)}°`].filter(Boolean).join(" · ");
  byId("facts").classList.toggle("doubtful", Boolean(photo.doubtful && !photo.agreed));
  const about = [["Camera", photo.camera], ["Taken", photo.time?.slice(0, 16)], ["Note", photo.note]];
  if (photo.look) about.push(["Light", `${showKelvin(photo.light_kelvin)}, tint ${showTint(photo.light_tint)}`]);
  byId("about").replaceChildren(...about.filter(([, value]) => value).flatMap(([key, value]) => [element("dt", key), element("dd", value)]));
  byId("group-name").textContent = photo.group ? (/^\d+$/.test(photo.group) ? `light ${photo.group}` : photo.group) : "";
  byId("agree-text").textContent = photo.agreed ? "Not right yet" : "Looks right";
  byId("mini").setAttribute("aria-label", describe(photo));
  showSliders(lookOf(photo));
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

let soon = 0;

function showMini() {
  const photo = active();
  clearTimeout(soon);
  if (loupe.isOpen) return;
  if (!photo?.known) { // the picture of another must not stand above its name
    miniPicture = null;
    byId("mini").width = byId("mini").width;
    delete byId("mini").dataset.drawn;
    return;
  }
  if (miniPicture?.id !== photo.id) byId("small").classList.add("waiting");
  soon = setTimeout(async () => {
    try {
      const picture = await load(photo);
      if (store.active !== photo.id || loupe.isOpen) return;
      miniPicture = picture;
      byId("small").classList.remove("waiting");
      if (busy) return;
      draw(picture, byId("mini"), lookOf(active()));
      tellSliders(lookOf(active()));
    } catch (error) {
      if (error.status !== 400) tell(error);
    }
  }, miniPicture?.id === photo.id ? 0 : 220);
}

function showShoot() {
  const { shoot } = store;
  const photos = [...store.photos.values()];
  const groups = new Set(photos.map((photo) => photo.group).filter(Boolean)).size;
  const doubtful = photos.filter((photo) => photo.doubtful && !photo.agreed).length;
  const agreed = photos.filter((photo) => photo.agreed).length;
  byId("title").textContent = shoot.folder;
  document.title = `${shoot.folder} · C5 studio`;
  const parts = [`${photos.length} photograph${photos.length === 1 ? "" : "s"}`];
  if (groups) parts.push(`${groups} group${groups === 1 ? "" : "s"}`);
  if (doubtful) parts.push(`${doubtful} doubtful`);
  if (agreed) parts.push(`${agreed} right`);
  byId("counts").textContent = parts.join(" · ");
  showProgress(shoot.work);
  const problems = [...shoot.problems, ...shoot.notes];
  if (byId("problems").dataset.shown !== problems.join("\n")) {
    byId("problems").dataset.shown = problems.join("\n");
    byId("problems").replaceChildren(...problems.map((problem) => element("p", problem)), ...(shoot.problems.length ? [againButton()] : []));
  }
  byId("undo").disabled = !shoot.undo;
  byId("redo").disabled = !shoot.redo;
  byId("undo").title = shoot.undo ? `Undo ${shoot.undo} (Ctrl+Z)` : "Nothing to undo";
  byId("redo").title = shoot.redo ? `Redo ${shoot.redo} (Ctrl+Y)` : "Nothing to redo";
  byId("write").disabled = !shoot.grouped;
  followPlan(shoot.plan);
}

function againButton() {
  const button = element("button", "Look again");
  button.addEventListener("click", () => request("again", {}).catch(tell));
  return button;
}

function showProgress(work) {
  const place = byId("progress");
  while (place.children.length > work.length) place.lastChild.remove();
  work.forEach(({ what, done, total, left }, at) => {
    let line = place.children[at];
    if (!line) {
      line = element("div", "");
      line.append(element("span", ""), document.createElement("progress"));
      place.append(line);
    }
    const [text, bar] = line.children;
    text.textContent = [`${WORDS[what]} ${total > 1 ? `${done} of ${total}` : "…"}`, clock(left)].filter(Boolean).join(", ");
    bar.max = Math.max(total, 1);
    if (total > 1) bar.value = done;
    else bar.removeAttribute("value"); // nobody knows how long
    bar.setAttribute("aria-label", WORDS[what]);
  });
}

const tell = (error) => say(error.message);

// What can be done

function apply(to) {
  const ids = chosen();
  if (!ids.length) return;
  act({ do: "adjust", ids, to, ...wish() }).then(() => say(`The same correction for the ${to}; Ctrl+Z undoes it`), tell);
}

function agree(whole) {
  const photo = active();
  if (!photo?.known) return;
  const ids = whole ? groupOf(photo).map((each) => each.id) : chosen();
  const agreed = whole ? true : !photo.agreed;
  const next = store.list[indexOf(photo.id) + 1];
  act({ do: "agree", ids, agreed }).then(() => {
    const several = `${ids.length} photographs ${agreed ? "look right" : "are not right yet"}`;
    say(ids.length > 1 ? several : `${photo.name} ${agreed ? "looks right" : "is not right yet"}`);
    if (agreed && !whole && ids.length === 1 && next) select(next.id);
  }, tell);
}

const reset = () => chosen().length && act({ do: "reset", ids: chosen() }).then(() => say("Correction removed"), tell);
const undo = () => act({ do: "undo" }).then(() => say("Undone; Ctrl+Y redoes it"), tell);
const redo = () => act({ do: "redo" }).then(() => say("Redone"), tell);

let named = () => {};

function askName(title, text, then) {
  byId("name-title").textContent = title;
  byId("name-text").value = text;
  byId("names").replaceChildren(...[...new Set(store.list.map((photo) => photo.group))].filter(Boolean).map((name) => Object.assign(document.createElement("option"), { value: name })));
  named = then;
  byId("name-box").showModal();
  byId("name-text").select();
}

function nameGroup() {
  const photo = active();
  if (!photo?.group) return;
  askName("Name of the group", /^\d+$/.test(photo.group) ? "" : photo.group, (name) => act({ do: "rename", group: photo.group, name }).then(() => say(`The group is called ${name}`), tell));
}

function newGroup() {
  const ids = chosen();
  if (!ids.length || !active()?.group) return;
  askName(`A new group of ${ids.length === 1 ? "one photograph" : `${ids.length} photographs`}`, "", (name) => move(ids, name));
}

function joinGroup() {
  const photo = active();
  const names = [...new Set([...store.photos.values()].sort(byTime).map((each) => each.group))].filter(Boolean);
  const at = names.indexOf(photo?.group);
  const other = names[at > 0 ? at - 1 : 1];
  if (!other) return;
  act({ do: "rename", group: photo.group, name: other }).then(() => say(`Joined with ${other}; Ctrl+Z undoes it`), tell);
}

function setOrder(order) {
  store.order = order;
  byId("order").value = order;
  arrange();
  lay();
  if (store.active) reveal(store.active);
}

const ORDERS = ["group", "doubt", "time"];

const PLAIN = {
  "[": () => nudge(warmer, -3), "]": () => nudge(warmer, 3), "{": () => nudge(warmer, -15), "}": () => nudge(warmer, 15),
  ";": () => nudge(shift, -1), "'": () => nudge(shift, 1), ":": () => nudge(shift, -5), '"': () => nudge(shift, 5),
  "-": () => nudge(strength, -5), "=": () => nudge(strength, 5), "+": () => nudge(strength, 5),
  g: () => apply("group"), r: () => apply("rest"), 0: reset, a: () => agree(false), A: () => agree(true),
  p: startPicking, b: () => compareFrom("before"), s: () => compareFrom("split"), f: () => (loupe.isOpen ? zoom() : openLoupe()),
  h: showWhy, m: nameGroup, n: newGroup, j: joinGroup, o: () => setOrder(ORDERS[(ORDERS.indexOf(store.order) + 1) % 3]),
  w: () => store.shoot.grouped && openWriting(), "?": () => byId("help-box").showModal(),
};

function compareFrom(mode) {
  if (!loupe.isOpen) openLoupe();
  compare(mode);
}

const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

function onKey(event) {
  if (document.querySelector("dialog[open]") || event.altKey) return;
  const isTyping = event.target.matches?.("input[type=text], textarea, select");
  const isSlider = event.target.matches?.("input[type=range]");
  if (event.ctrlKey || event.metaKey) {
    const key = event.key.toLowerCase();
    const does = key === "z" ? (event.shiftKey ? redo : undo) : key === "y" ? redo : key === "a" ? selectAll : null;
    if (does && !isTyping) event.preventDefault(), does();
    return;
  }
  if (isTyping) return;
  if (loupe.picking && (MOVES.has(event.key) || ["Enter", "Escape", "+", "-", "="].includes(event.key))) {
    event.preventDefault();
    if (event.key === "Enter") measurePatch();
    else if (event.key === "Escape") stopPicking();
    else movePatch(event.key, event.shiftKey);
    return;
  }
  if (MOVES.has(event.key)) {
    if (isSlider) return;
    event.preventDefault();
    const id = neighbor(store.active, loupe.isOpen && event.key === "ArrowUp" ? "ArrowLeft" : loupe.isOpen && event.key === "ArrowDown" ? "ArrowRight" : event.key);
    if (id) select(id, event.shiftKey && !loupe.isOpen ? "range" : "only");
    return;
  }
  if (event.key === "Escape" && isSlider) return byId(loupe.isOpen ? "back" : "grid").focus();
  if (event.key === "Escape" && loupe.isOpen) return closeLoupe();
  if ((event.key === "Enter" || event.key === " ") && !event.target.matches?.("button")) {
    event.preventDefault();
    return loupe.isOpen ? closeLoupe() : openLoupe();
  }
  const does = PLAIN[event.key];
  if (does) event.preventDefault(), does();
}

function selectAll() {
  store.selected = new Set(store.list.map((photo) => photo.id));
  show();
  showPanel();
}

// The clock of the page

let failures = 0;

async function keepAsking() {
  try {
    if (!busy) await poll(); // a slider that moves needs the machine
    if (failures) byId("problems").dataset.shown = "";
    if (failures) showShoot();
    failures = 0;
  } catch {
    failures += 1;
    if (failures > 1) {
      byId("problems").dataset.shown = "stopped";
      byId("problems").replaceChildren(element("p", "The studio has stopped. What you decided is kept: start it again with c5 studio, and open the address that it prints."));
    }
  }
  const isBusy = store.shoot?.work.length || ["planning", "writing"].includes(store.shoot?.plan?.state);
  setTimeout(keepAsking, document.hidden ? 4000 : isBusy ? FASTEST : SLOWEST);
}

onChange((what) => {
  if (what === "photos") lay();
  if (what === "selection") {
    show();
    if (store.active) reveal(store.active);
  }
  if (what !== "work") {
    busy = what === "selection" ? false : busy;
    showPanel();
    if (loupe.isOpen) showPhoto();
    else showMini();
  }
  if (what !== "selection") showShoot();
});

sliders.forEach((slider) => {
  slider.addEventListener("input", followSliders);
  slider.addEventListener("change", commit);
  slider.addEventListener("pointerup", () => setTimeout(release));
  slider.addEventListener("dblclick", () => {
    slider.value = slider === strength ? 100 : 0;
    followSliders();
    commit();
  });
});

const CLICKS = {
  undo, redo, "to-group": () => apply("group"), "to-rest": () => apply("rest"), reset, agree: () => agree(false),
  "agree-group": () => agree(true), "name-group": nameGroup, "new-group": newGroup, "join-group": joinGroup,
  release: () => act({ do: "release", id: store.active }).then(() => say("The group has its own light again"), tell),
  help: () => byId("help-box").showModal(), write: openWriting, "name-cancel": () => byId("name-box").close(""),
};
for (const [id, does] of Object.entries(CLICKS)) byId(id).addEventListener("click", does);
byId("order").addEventListener("change", () => setOrder(byId("order").value));
byId("small").addEventListener("dblclick", openLoupe);
byId("name-form").addEventListener("submit", () => {
  const name = byId("name-text").value.trim();
  if (name) named(name);
});
byId("keys").append(...KEYS.flatMap(([key, text]) => [element("kbd", key), element("span", text)]));
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", () => !document.hidden && poll().catch(() => {}));

byId("needs-modules").remove();
byId("studio").hidden = false;
startGrid(openLoupe);
startLoupe();
startWriting();
keepAsking();
byId("grid").focus();
