// One photograph, large: before and after, a gray patch, the heat map.

import { draw, load, lookOf, prefetch } from "./picture.js";
import { act, active, address, ask, askJson, indexOf, select, showKelvin, store } from "./store.js";
import { say } from "./words.js";

const byId = (id) => document.getElementById(id);
const [stage, after, before, wipe, quick, patch, note] = ["stage", "after", "before", "wipe", "quick", "patch", "stage-note"].map(byId);
const strip = byId("strip");

export const loupe = { isOpen: false, mode: "after", split: 50, picking: false, picture: null, box: null };

export function openLoupe() {
  if (!active()) return;
  loupe.isOpen = true;
  byId("loupe").hidden = false;
  byId("grid").hidden = true;
  document.body.classList.add("large");
  showPhoto();
  byId("back").focus({ preventScroll: true });
}

export function closeLoupe() {
  stopPicking();
  loupe.isOpen = false;
  byId("loupe").hidden = true;
  byId("grid").hidden = false;
  document.body.classList.remove("large");
  byId("grid").focus({ preventScroll: true });
}

export async function showPhoto() {
  const photo = active();
  if (!photo || !loupe.isOpen) return;
  showStrip();
  if (loupe.picture?.id !== photo.id) {
    loupe.picture = null;
    after.hidden = before.hidden = wipe.hidden = true;
    quick.hidden = !photo.version;
    if (photo.version) quick.src = address(photo);
    note.textContent = photo.failure || (photo.known ? "developing …" : "its light is still being found …");
  }
  if (!photo.known) return;
  try {
    const picture = await load(photo);
    if (store.active !== photo.id || !loupe.isOpen) return;
    loupe.picture = picture;
    note.textContent = "";
    after.hidden = false;
    quick.hidden = true;
    redraw(lookOf(photo));
    prefetch();
  } catch (error) {
    if (store.active === photo.id) note.textContent = error.message;
  }
}

export function redraw(look, moving = false) {
  const { picture, mode } = loupe;
  if (!picture) return;
  draw(picture, after, look, { moving });
  fit(picture);
  const isCompared = mode !== "after";
  if (isCompared && before.dataset.of !== picture.id) {
    before.dataset.of = picture.id;
    draw(picture, before, look, { before: true });
  }
  before.hidden = !isCompared;
  wipe.hidden = mode !== "split";
  before.style.clipPath = mode === "split" ? `inset(0 ${100 - loupe.split}% 0 0)` : "none";
  const { left, width, top, height } = place(picture);
  Object.assign(wipe.style, { left: `${left + (width * loupe.split) / 100}px`, top: `${top}px`, height: `${height}px` });
  wipe.setAttribute("aria-valuenow", Math.round(loupe.split));
  note.textContent = mode === "before" ? "as shot" : mode === "split" ? "as shot | balanced" : "";
}

// Where the picture is on the stage.
function place(picture) {
  const { width, height } = picture.preview;
  const [wide, high] = [stage.clientWidth, stage.clientHeight];
  const scale = loupe.full ? 1 / devicePixelRatio : Math.min(wide / width, high / height);
  const size = { width: width * scale, height: height * scale };
  return { ...size, left: Math.max((wide - size.width) / 2, 0), top: Math.max((high - size.height) / 2, 0), scale };
}

function fit(picture) {
  const { left, top, width, height } = place(picture);
  for (const canvas of [after, before]) {
    Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  }
}

export function compare(mode) {
  loupe.mode = loupe.mode === mode ? "after" : mode;
  byId("toggle-before").setAttribute("aria-pressed", loupe.mode === "before");
  byId("toggle-split").setAttribute("aria-pressed", loupe.mode === "split");
  if (active()) redraw(lookOf(active()));
}

export function zoom() {
  loupe.full = !loupe.full;
  byId("zoom").setAttribute("aria-pressed", loupe.full);
  stage.classList.toggle("full", loupe.full);
  after.dataset.full = before.dataset.full = loupe.full ? "1" : "";
  if (active()) redraw(lookOf(active()));
}

export function step(by) {
  const photo = store.list[indexOf(store.active) + by];
  if (photo) select(photo.id);
}

function showStrip() {
  const at = indexOf(store.active);
  const count = Math.max(5, Math.floor(strip.clientWidth / 96));
  const from = Math.max(0, Math.min(at - (count >> 1), store.list.length - count));
  const photos = store.list.slice(from, from + count).map((photo) => store.photos.get(photo.id));
  strip.replaceChildren(
    ...photos.map((photo) => {
      const picture = document.createElement("img");
      picture.alt = "";
      if (photo.version) picture.src = address(photo);
      picture.className = photo.id === store.active ? "active" : "";
      picture.addEventListener("click", () => select(photo.id));
      return picture;
    }),
  );
}

// A gray patch: a rectangle drawn with the mouse, or moved and sized by keys.

export function startPicking() {
  if (!loupe.isOpen) openLoupe();
  const photo = active();
  if (!photo?.known) return;
  loupe.picking = true;
  loupe.box = { x: 0.42, y: 0.42, w: 0.16, h: 0.16 };
  byId("pick").setAttribute("aria-pressed", "true");
  stage.classList.add("picking");
  showPatch();
  say("Draw a rectangle on something gray, or move it with the arrow keys, + and −; then Enter");
}

export function stopPicking() {
  loupe.picking = false;
  patch.hidden = true;
  byId("pick").setAttribute("aria-pressed", "false");
  stage.classList.remove("picking");
}

function showPatch() {
  if (!loupe.picture) {
    patch.hidden = true;
    return;
  }
  const { left, top, width, height } = place(loupe.picture);
  const { x, y, w, h } = loupe.box;
  patch.hidden = false;
  Object.assign(patch.style, {
    left: `${left + x * width}px`, top: `${top + y * height}px`, width: `${w * width}px`, height: `${h * height}px`,
  });
}

export function movePatch(key, coarse) {
  const by = coarse ? 0.05 : 0.01;
  const box = loupe.box;
  const grow = { "+": by, "=": by, "-": -by, "−": -by }[key];
  if (grow) Object.assign(box, { w: clamp(box.w + grow, 0.02, 1), h: clamp(box.h + grow, 0.02, 1) });
  const [across, down] = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[key] || [0, 0];
  box.x = clamp(box.x + across, 0, 1 - box.w);
  box.y = clamp(box.y + down, 0, 1 - box.h);
  showPatch();
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function boxInPixels() {
  const { fullWidth, fullHeight } = loupe.picture.preview;
  const { x, y, w, h } = loupe.box;
  const [left, top] = [Math.floor(x * fullWidth), Math.floor(y * fullHeight)];
  return [left, top, clamp(Math.round(w * fullWidth), 1, fullWidth - left), clamp(Math.round(h * fullHeight), 1, fullHeight - top)];
}

export async function measurePatch() {
  const photo = active();
  if (!loupe.picture || !photo) return;
  say("Measuring …");
  try {
    const { light } = await askJson("measure", { id: photo.id, box: boxInPixels() });
    const [red, , blue] = light.map((value) => light[1] / value);
    byId("gray-text").textContent = `The patch needs gains of ${red.toFixed(2)} for red and ${blue.toFixed(2)} for blue. Take it for gray?`;
    byId("gray-box").showModal();
  } catch (error) {
    say(error.message);
  }
}

function takeGray(forGroup) {
  const photo = active();
  const box = boxInPixels();
  byId("gray-box").close();
  stopPicking();
  const event = forGroup ? { do: "refer", id: photo.id, box } : { do: "gray", ids: [photo.id], source: photo.id, box };
  act(event).then(
    () => say(forGroup ? `The light of group ${photo.group} is that of the patch` : "This photograph has the light of the patch"),
    (error) => say(error.message),
  );
}

export async function showWhy() {
  const photo = active();
  if (!photo) return;
  const parts = [photo.camera || "unknown camera", photo.time || "unknown time"];
  if (photo.kelvin_low) parts.push(`90 % likely between ${showKelvin(photo.kelvin_low)} and ${showKelvin(photo.kelvin_high)}`);
  if (photo.doubt !== undefined) parts.push(`uncertain by ${photo.doubt}°`);
  if (photo.roll) parts.push(`the camera is known from ${photo.roll} photographs`);
  byId("why-title").textContent = photo.name;
  byId("why-text").textContent = photo.failure || `${parts.join(" · ")}.`;
  byId("why-picture").textContent = photo.failure ? "" : "drawing …";
  byId("why-box").showModal();
  if (photo.failure) return;
  try {
    const data = await (await ask(`why/${photo.id}`)).blob();
    const picture = document.createElement("img");
    picture.alt = "Histograms of the photograph, the filters and the bias that the model made of them, and the heat map of its light";
    picture.src = URL.createObjectURL(data);
    byId("why-picture").replaceChildren(picture);
  } catch (error) {
    byId("why-picture").textContent = error.message;
  }
}

export function startLoupe() {
  byId("back").addEventListener("click", closeLoupe);
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("toggle-before").addEventListener("click", () => compare("before"));
  byId("toggle-split").addEventListener("click", () => compare("split"));
  byId("zoom").addEventListener("click", zoom);
  byId("why").addEventListener("click", showWhy);
  byId("pick").addEventListener("click", () => (loupe.picking ? stopPicking() : startPicking()));
  byId("gray-one").addEventListener("click", () => takeGray(false));
  byId("gray-group").addEventListener("click", () => takeGray(true));
  byId("gray-cancel").addEventListener("click", () => byId("gray-box").close());
  byId("gray-box").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || document.activeElement.id === "gray-cancel") return;
    event.preventDefault();
    takeGray(event.shiftKey || document.activeElement.id === "gray-group");
  });
  new ResizeObserver(() => loupe.picture && active() && redraw(lookOf(active()))).observe(stage);
  drag(wipe, (x) => {
    const { left, width } = place(loupe.picture);
    loupe.split = clamp(((x - left) / width) * 100, 0, 100);
    redraw(lookOf(active()));
  });
  wipe.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!by) return;
    event.stopPropagation();
    loupe.split = clamp(loupe.split + by, 0, 100);
    redraw(lookOf(active()));
  });
  let start = null;
  drag(
    stage,
    (x, y, isFirst) => {
      if (!loupe.picking || !loupe.picture) return;
      const { left, top, width, height } = place(loupe.picture);
      const here = [clamp((x - left) / width, 0, 1), clamp((y - top) / height, 0, 1)];
      if (isFirst) start = here;
      const [x0, x1] = [start[0], here[0]].sort((a, b) => a - b);
      const [y0, y1] = [start[1], here[1]].sort((a, b) => a - b);
      loupe.box = { x: x0, y: y0, w: x1 - x0, h: y1 - y0 };
      showPatch();
    },
    () => loupe.picking && loupe.box.w > 0.004 && loupe.box.h > 0.004 && measurePatch(),
  );
}

function drag(element, onMove, onEnd = () => {}) {
  element.addEventListener("pointerdown", (down) => {
    if (down.button || (element === stage && (!loupe.picking || down.target === wipe))) return;
    const edge = stage.getBoundingClientRect();
    const at = (event) => [event.clientX - edge.left + stage.scrollLeft, event.clientY - edge.top + stage.scrollTop];
    const move = (event) => onMove(...at(event), false);
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      onEnd();
    };
    down.preventDefault();
    onMove(...at(down), true);
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  });
}
