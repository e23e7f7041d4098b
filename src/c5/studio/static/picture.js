// The photograph that is looked at: its pixels are fetched once, and every slider is followed here.

import { Plane, Preview } from "./develop.js";
import { ask, askJson, indexOf, store } from "./store.js";

const KEPT = 4;
const SLOW = 30; // milliseconds: a picture that takes longer is drawn coarser while a slider moves
const COARSEST = 3; // so many times more than when it rests
const pictures = new Map(); // by id, the latest last
const planes = new Map(); // by camera

export const lookOf = (photo) => ({ strength: photo.strength, warmer: photo.warmer, shift: photo.shift });
export const isSame = (a, b) => Math.abs(a.strength - b.strength) < 1e-9 && a.warmer === b.warmer && a.shift === b.shift;

function planeOf(id, camera) {
  const key = camera || id;
  if (!planes.has(key)) {
    const made = ask(`plane/${id}`).then((answer) => answer.arrayBuffer());
    planes.set(key, made.catch(() => (planes.delete(key), null)));
  }
  return planes.get(key);
}

async function fetchPicture(photo) {
  const [told, pixels] = await Promise.all([
    askJson(`develop/${photo.id}`),
    ask(`pixels/${photo.id}`).then((answer) => answer.arrayBuffer()),
  ]);
  const { id, version } = photo;
  const picture = { id, version, look: lookOf(photo), told, preview: new Preview(pixels), plane: null, coarser: 0 };
  if (told.place) planeOf(id, told.camera).then((table) => (picture.plane = table && new Plane(table, told.daylight)));
  return picture;
}

// The picture of a photograph, up to date with what was decided.
export async function load(photo) {
  let promise = pictures.get(photo.id);
  if (!promise) {
    promise = fetchPicture(photo);
    promise.catch(() => pictures.delete(photo.id));
  }
  pictures.delete(photo.id);
  pictures.set(photo.id, promise);
  while (pictures.size > KEPT) pictures.delete(pictures.keys().next().value);
  const picture = await promise;
  if (picture.version !== photo.version || !isSame(picture.look, lookOf(photo))) {
    picture.told = await askJson(`develop/${photo.id}`);
    picture.version = photo.version;
    picture.look = lookOf(photo);
  }
  return picture;
}

export function prefetch() {
  const next = store.list[indexOf(store.active) + 1];
  if (next?.known && !pictures.has(next.id)) load(next).catch(() => {});
}

// What is taken out for a look: as the server says it, or by the camera's table while a slider moves.
export function balanceFor(picture, look) {
  const { told, plane } = picture;
  if (!plane || isSame(look, picture.look)) {
    return { illuminant: told.illuminant, matrix: told.illuminant_matrix, place: plane && plane.move(told.place, look) };
  }
  return plane.follow(told.light, told.light_matrix, told.place, look);
}

// Draw on a canvas no larger than it is shown; coarser while a slider moves, if the machine needs that.
export function draw(picture, canvas, look, { moving = false, before = false } = {}) {
  const started = performance.now();
  const { preview, told } = picture;
  const shown = Math.max((canvas.parentElement.clientWidth || 800) * devicePixelRatio, 1);
  let times = canvas.dataset.full ? 1 : Math.max(1, Math.floor(preview.width / shown));
  if (moving) times += picture.coarser;
  const { illuminant, matrix } = before
    ? { illuminant: told.as_shot, matrix: told.as_shot_matrix }
    : balanceFor(picture, look);
  const image = preview.develop(illuminant, matrix, times);
  if (canvas.width !== image.width || canvas.height !== image.height) {
    canvas.width = image.width;
    canvas.height = image.height;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  const took = performance.now() - started;
  if (moving && took > SLOW && picture.coarser < COARSEST) picture.coarser += 1;
  canvas.dataset.drawn = picture.id;
  return image;
}
