// The grid: only the rows that can be seen exist, so that two thousand photographs scroll like twenty.

import { act, active, address, changed, chosen, colorOf, groupOf, indexOf, select, showKelvin, showTint, store } from "./store.js";
import { say } from "./words.js";

const HEADER = 46;
const GAP = 10;
const CAPTION = 24;
const AHEAD = 600; // pixels beyond the window that are there already

const grid = document.getElementById("grid");
const field = document.getElementById("field");
const tiles = new Map(); // by id
const headers = new Map(); // by name of the group
let rows = [];
let geometry = { columns: 1, width: 200, height: 150 };
let open = () => {};
let scheduled = false;

export function startGrid(onOpen) {
  open = onOpen;
  grid.addEventListener("scroll", schedule, { passive: true });
  new ResizeObserver(() => lay()).observe(grid);
  grid.addEventListener("click", onClick);
  grid.addEventListener("dblclick", (event) => tileOf(event) && open());
  grid.addEventListener("dragstart", onDrag);
  grid.addEventListener("dragover", onDragOver);
  grid.addEventListener("dragleave", () => mark(null));
  grid.addEventListener("drop", onDrop);
}

export function lay() {
  const inner = grid.clientWidth - 2 * GAP;
  if (inner <= 0) return;
  const wanted = inner > 1500 ? 232 : 196;
  const columns = Math.max(2, Math.floor((inner + GAP) / (wanted + GAP)));
  const width = Math.floor((inner + GAP) / columns) - GAP;
  geometry = { columns, width, height: Math.round((width * 2) / 3) + CAPTION };
  rows = [];
  let top = GAP;
  for (const section of store.sections) {
    if (section.name !== null) {
      rows.push({ top, height: HEADER, section });
      top += HEADER;
    }
    for (let at = 0; at < section.photos.length; at += columns) {
      rows.push({ top, height: geometry.height, photos: section.photos.slice(at, at + columns) });
      top += geometry.height + GAP;
    }
    top += section.name === null ? 0 : GAP;
  }
  field.style.height = `${top}px`;
  show();
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    show();
  });
}

function firstRow(edge) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].top + rows[middle].height < edge) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function show() {
  const [from, to] = [grid.scrollTop - AHEAD, grid.scrollTop + grid.clientHeight + AHEAD];
  const seen = new Set();
  for (let at = firstRow(from); at < rows.length && rows[at].top < to; at += 1) {
    const row = rows[at];
    if (row.section) {
      seen.add(`group ${row.section.name}`);
      showHeader(row);
    } else {
      row.photos.forEach((photo, column) => {
        seen.add(photo.id);
        showTile(store.photos.get(photo.id), GAP + column * (geometry.width + GAP), row.top);
      });
    }
  }
  for (const [key, element] of tiles) if (!seen.has(key)) element.remove(), tiles.delete(key);
  for (const [key, element] of headers) if (!seen.has(key)) element.remove(), headers.delete(key);
  grid.setAttribute("aria-activedescendant", store.active ? `photo-${store.active}` : "");
}

function showTile(photo, left, top) {
  let tile = tiles.get(photo.id);
  if (!tile) {
    tile = makeTile(photo);
    tiles.set(photo.id, tile);
    field.append(tile);
  }
  const place = `translate(${left}px, ${top}px)`;
  if (tile.place !== place) tile.style.transform = tile.place = place;
  if (tile.wide !== geometry.width) {
    tile.wide = geometry.width;
    tile.style.width = `${geometry.width}px`;
    tile.style.height = `${geometry.height}px`;
  }
  const [isSelected, isActive] = [store.selected.has(photo.id), store.active === photo.id];
  if (tile.isSelected !== isSelected || tile.isActive !== isActive) {
    [tile.isSelected, tile.isActive] = [isSelected, isActive];
    tile.setAttribute("aria-selected", isSelected);
    tile.classList.toggle("active", isActive);
  }
  if (tile.photo !== photo) fill(tile, photo);
}

function makeTile(photo) {
  const tile = document.createElement("div");
  tile.className = "tile";
  tile.id = `photo-${photo.id}`;
  tile.dataset.id = photo.id;
  tile.setAttribute("role", "option");
  tile.draggable = true;
  const frame = document.createElement("div");
  frame.className = "frame";
  const picture = document.createElement("img");
  picture.alt = "";
  picture.decoding = "async";
  picture.draggable = false;
  frame.append(picture);
  const caption = document.createElement("div");
  caption.className = "caption";
  const [name, marks, light] = ["name", "marks", "light"].map((kind) => {
    const part = document.createElement("span");
    part.className = kind;
    caption.append(part);
    return part;
  });
  tile.append(frame, caption);
  Object.assign(tile, { picture, frame, name, marks, light });
  return tile;
}

function fill(tile, photo) {
  tile.photo = photo;
  tile.name.textContent = photo.name.split("/").pop();
  tile.light.textContent = photo.kelvin ? showKelvin(photo.kelvin) : "";
  const marks = [
    [photo.doubtful && !photo.agreed, "doubtful", "?"],
    [photo.reference, "reference", "◎"],
    [photo.gray || photo.strength < 1 || photo.warmer || photo.shift, "corrected", "±"],
    [photo.agreed, "agreed", "✓"],
  ].filter(([holds]) => holds);
  tile.marks.textContent = marks.map(([, , sign]) => sign).join(" ");
  tile.className = ["tile", ...marks.map(([, word]) => word), photo.failure ? "failed" : "", tile.isActive ? "active" : ""].join(" ");
  tile.title = photo.failure || (photo.kelvin ? `${photo.name}: ${showKelvin(photo.kelvin)}, tint ${showTint(photo.tint)}` : photo.name);
  tile.setAttribute("aria-label", describe(photo, marks));
  if (photo.failure) {
    tile.frame.dataset.note = photo.failure;
  } else {
    delete tile.frame.dataset.note;
  }
  const source = photo.version ? address(photo) : "";
  if (tile.source === source) return;
  tile.source = source;
  if (!source) return;
  const isNew = !tile.picture.src;
  // While somebody scrolls fast, nothing is loaded that is gone in a moment.
  if (isNew) setTimeout(() => tile.isConnected && tile.source === source && (tile.picture.src = source), 60);
  else tile.picture.src = source;
}

export function describe(photo, marks = []) {
  const parts = [photo.name];
  if (photo.failure) parts.push(`cannot be read: ${photo.failure}`);
  if (photo.group) parts.push(`group ${photo.group}`);
  if (photo.kelvin) parts.push(`${photo.kelvin} kelvin, tint ${photo.tint}`);
  return [...parts, ...marks.map(([, word]) => word)].join(", ");
}

function showHeader(row) {
  const { name, photos } = row.section;
  const key = `group ${name}`;
  let header = headers.get(key);
  if (!header) {
    header = document.createElement("div");
    header.className = "group";
    header.dataset.group = name;
    header.setAttribute("role", "presentation");
    const [chip, title, text] = ["chip", "title", "text"].map((kind) => {
      const part = document.createElement(kind === "title" ? "h3" : "span");
      part.className = kind;
      header.append(part);
      return part;
    });
    Object.assign(header, { chip, titleLine: title, text });
    headers.set(key, header);
    field.append(header);
  }
  header.style.transform = `translate(0, ${row.top}px)`;
  const latest = photos.map((photo) => store.photos.get(photo.id));
  const lights = latest.filter((photo) => photo.light_kelvin || photo.kelvin).map((photo) => photo.light_kelvin || photo.kelvin);
  const middle = lights.sort((a, b) => a - b)[lights.length >> 1];
  const doubtful = latest.filter((photo) => photo.doubtful && !photo.agreed).length;
  const agreed = latest.filter((photo) => photo.agreed).length;
  const parts = [`${photos.length} photograph${photos.length === 1 ? "" : "s"}`];
  if (middle) parts.push(`about ${showKelvin(Math.round(middle / 50) * 50)}`);
  if (latest.some((photo) => photo.reference)) parts.push("by its gray card");
  if (doubtful) parts.push(`${doubtful} doubtful`);
  if (agreed) parts.push(`${agreed === photos.length ? "all" : agreed} look${agreed === 1 && photos.length > 1 ? "s" : ""} right`);
  header.titleLine.textContent = /^\d+$/.test(name) ? `Light ${name}` : name || (latest.every((photo) => photo.failure) ? "Cannot be read" : "No group yet");
  header.text.textContent = parts.join(" · ");
  header.chip.style.background = middle ? colorOf(middle) : "transparent";
}

export function reveal(id) {
  const row = rows.find((each) => each.photos && each.photos.some((photo) => photo.id === id));
  if (!row) return;
  if (row.top < grid.scrollTop + 50) grid.scrollTop = row.top - 60;
  else if (row.top + row.height > grid.scrollTop + grid.clientHeight) {
    grid.scrollTop = row.top + row.height - grid.clientHeight + 20;
  }
}

// Up and down go to the row above or below, across groups.
export function neighbor(id, key) {
  const at = indexOf(id);
  const last = store.list.length - 1;
  if (key === "Home") return store.list[0]?.id;
  if (key === "End") return store.list[last]?.id;
  if (key === "ArrowLeft") return store.list[Math.max(at - 1, 0)]?.id;
  if (key === "ArrowRight") return store.list[Math.min(at + 1, last)]?.id;
  const lines = rows.filter((row) => row.photos);
  const line = lines.findIndex((row) => row.photos.some((photo) => photo.id === id));
  if (line < 0) return store.list[0]?.id;
  const column = lines[line].photos.findIndex((photo) => photo.id === id);
  const page = Math.max(1, Math.floor(grid.clientHeight / (geometry.height + GAP)) - 1);
  const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page }[key];
  const target = lines[Math.min(Math.max(line + step, 0), lines.length - 1)];
  return target.photos[Math.min(column, target.photos.length - 1)].id;
}

const tileOf = (event) => event.target.closest?.(".tile");

function onClick(event) {
  const tile = tileOf(event);
  const header = event.target.closest?.(".group");
  if (tile) select(tile.dataset.id, event.shiftKey ? "range" : event.ctrlKey || event.metaKey ? "toggle" : "only");
  else if (header) selectGroup(header.dataset.group);
}

function selectGroup(name) {
  const photos = store.list.filter((photo) => (photo.group || "") === name);
  if (!photos.length) return;
  store.selected = new Set(photos.map((photo) => photo.id));
  store.active = store.anchor = photos[0].id;
  changed("selection");
}

let target = null;

function mark(element) {
  if (target === element) return;
  target?.classList.remove("target");
  target = element;
  target?.classList.add("target");
}

function onDrag(event) {
  const tile = tileOf(event);
  if (!tile) return;
  if (!store.selected.has(tile.dataset.id)) select(tile.dataset.id);
  event.dataTransfer.setData("text/plain", "");
  event.dataTransfer.effectAllowed = "move";
}

function groupUnder(event) {
  const header = event.target.closest?.(".group");
  if (header) return [header.dataset.group, header];
  const tile = tileOf(event);
  const photo = tile && store.photos.get(tile.dataset.id);
  return photo?.group ? [photo.group, headers.get(`group ${photo.group}`) || tile] : [null, null];
}

function onDragOver(event) {
  const [name, element] = groupUnder(event);
  mark(name === null || name === active()?.group ? null : element);
  if (name !== null) event.preventDefault();
}

function onDrop(event) {
  event.preventDefault();
  mark(null);
  const [name] = groupUnder(event);
  const ids = chosen().filter((id) => store.photos.get(id).group !== name);
  if (name === null || !ids.length) return;
  move(ids, name);
}

export function move(ids, name) {
  const from = active();
  const all = from && groupOf(from).length === ids.length;
  act({ do: "group", ids, name }).then(
    () => say(`${ids.length} moved to ${name}${all ? "; the groups are one now" : ""}`),
    (error) => say(error.message),
  );
}
