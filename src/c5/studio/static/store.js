// What the page knows of the shoot, and how it asks the server. The server decides; the page shows.

export const store = {
  photos: new Map(), // by id
  shoot: null, // the last answer, without its photographs
  number: 0,
  order: "group",
  sections: [], // {name, photos}
  list: [], // photographs in the order in which they are shown
  selected: new Set(),
  active: null, // id
  anchor: null,
};

const listeners = [];
export const onChange = (listener) => listeners.push(listener);
export const changed = (what) => listeners.forEach((listener) => listener(what));

class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, wish) {
  const options = wish && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(wish),
  };
  const answer = await fetch(path, options);
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Refused(told.error || `the studio answers ${answer.status}`, answer.status);
  }
  return answer;
}

export const askJson = async (path, wish) => (await ask(path, wish)).json();

function take(told) {
  if (store.shoot && told.start !== store.shoot.start) {
    location.reload(); // the program was started again; what was decided is in its journal
    return;
  }
  const { photos, ...shoot } = told;
  for (const photo of photos) {
    if (photo.gone) store.photos.delete(photo.id);
    else store.photos.set(photo.id, photo);
  }
  store.number = Math.max(store.number, told.number);
  store.shoot = shoot;
  if (photos.length) arrange();
  changed(photos.length ? "photos" : "work");
}

export async function poll() {
  take(await askJson(`shoot?since=${store.number}`));
}

let last = Promise.resolve();

// Decisions are sent one after the other, each with what has been seen before it.
export function act(event) {
  last = last
    .catch(() => {})
    .then(async () => {
      try {
        take(await askJson("act", { event, seen: store.number }));
      } catch (error) {
        if (error.status === 409) await poll();
        throw error;
      }
    });
  return last;
}

export async function request(path, wish) {
  take(await askJson(path, wish));
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0); // not by the letters of a language, which takes fifty times as long
export const byTime = (a, b) => compare(a.time || "", b.time || "") || compare(a.name, b.name);
// What is decided goes to the end, except for the photograph that is being looked at.
const settled = (photo) => photo.agreed && photo.id !== store.active;
const doubt = (photo) => (photo.failure ? 1000 : settled(photo) ? (photo.doubt || 0) - 1000 : photo.doubt || 0);

export function arrange() {
  const all = [...store.photos.values()].sort(byTime);
  if (store.order === "group" && all.some((photo) => photo.group)) {
    const groups = new Map();
    for (const photo of all) {
      const name = photo.group || "";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(photo);
    }
    store.sections = [...groups].map(([name, photos]) => ({ name, photos }));
  } else {
    const sorted = store.order === "doubt" ? all.sort((a, b) => doubt(b) - doubt(a) || byTime(a, b)) : all;
    store.sections = sorted.length ? [{ name: null, photos: sorted }] : [];
  }
  store.list = store.sections.flatMap((section) => section.photos);
  if (!store.photos.has(store.active) && store.list.length) select(store.list[0].id);
}

export function select(id, how = "only") {
  if (how === "toggle") {
    if (store.selected.has(id) && store.selected.size > 1) store.selected.delete(id);
    else store.selected.add(id);
    store.anchor = id;
  } else if (how === "range" && store.anchor) {
    const [from, to] = [indexOf(store.anchor), indexOf(id)].sort((a, b) => a - b);
    store.selected = new Set(store.list.slice(from, to + 1).map((photo) => photo.id));
  } else {
    store.selected = new Set([id]);
    store.anchor = id;
  }
  store.active = id;
  changed("selection");
}

export const indexOf = (id) => store.list.findIndex((photo) => photo.id === id);
export const active = () => store.photos.get(store.active);
export const groupOf = (photo) => store.list.filter((each) => photo && each.group === photo.group);
export const chosen = () => [...store.selected].filter((id) => store.photos.has(id));
export const address = (photo) => `thumbnail/${photo.id}?v=${photo.version}`;

// Marked where the scale ends, as c5.colorimetry.temperature.show_kelvin does.
export const showKelvin = (kelvin) => {
  const mark = kelvin <= 1667 ? "<" : kelvin >= 100000 ? ">" : "";
  return `${mark}${kelvin >= 10000 ? Math.round(kelvin / 100) * 100 : kelvin} K`;
};
export const showTint = (tint) => (tint > 0 ? `+${tint}` : `${tint}`).replace("-", "−");

// About the color of a light, for a chip.
export function colorOf(kelvin) {
  const t = Math.min(Math.max(kelvin, 1500), 15000) / 100;
  const red = t <= 66 ? 255 : 329.7 * (t - 60) ** -0.1332;
  const green = t <= 66 ? 99.47 * Math.log(t) - 161.1 : 288.1 * (t - 60) ** -0.0755;
  const blue = t >= 66 ? 255 : t <= 19 ? 0 : 138.5 * Math.log(t - 10) - 305;
  const [r, g, b] = [red, green, blue].map((value) => Math.round(Math.min(Math.max(value, 0), 255)));
  return `rgb(${r} ${g} ${b})`;
}
