// Linear camera pixels to a picture, as c5.photos.picture.render does it: a test holds the two together.

const STEPS = 1 << 15;
const BRIGHTEST = 1 / 0.95;
const NEARLY_CLIPPED = 0.8 * 65535;
const DARKEST_WHITE = [0.3, 0.7];
const WORKING_PIXELS = 384 * 256;
const CLIPPED = 1;
const COUNTED = 2;
const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1];

const clamp = (value) => Math.min(Math.max(value, 0), 1);
const tone = (light) => clamp((light * 1.2) / (1 + 0.25 * light));
const encode = (light) =>
  Math.round(255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055));

const ENCODED = new Uint8Array(STEPS + 1);
for (let step = 0; step <= STEPS; step += 1) ENCODED[step] = encode(tone((step + 0.5) * (BRIGHTEST / STEPS)));

export class Preview {
  // `buffer` is what c5.photos.previews.Preview.encode makes.
  constructor(buffer) {
    [this.height, this.width, this.fullHeight, this.fullWidth] = new Uint32Array(buffer, 0, 4);
    const pixels = this.height * this.width;
    this.rgb = new Uint16Array(buffer, 16, 3 * pixels);
    this.flags = new Uint8Array(buffer, 16 + 6 * pixels, pixels);
    const every = Math.max(1, Math.floor(Math.sqrt(pixels / WORKING_PIXELS)));
    const sample = [];
    for (let y = 0; y < this.height; y += every) {
      for (let x = 0; x < this.width; x += every) {
        const at = y * this.width + x;
        if (this.flags[at] & COUNTED) sample.push(this.rgb[3 * at], this.rgb[3 * at + 1], this.rgb[3 * at + 2]);
      }
    }
    this.sample = new Uint16Array(sample);
    this.levels = new Uint32Array(65536);
    this.smaller = new Map(); // by how many times
  }

  // The same picture, so many times smaller each way: the mean of its pixels.
  shrunk(times) {
    if (times <= 1) return this;
    if (!this.smaller.has(times)) this.smaller.set(times, shrink(this, times));
    return this.smaller.get(times);
  }

  // A picture to draw into: the same one as long as its size stays, so that no slider makes garbage.
  blank(width, height) {
    if (this.image?.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    return this.image;
  }

  // The 97th percentile of the brightest channel is shown at 0.9.
  exposure([red, green, blue]) {
    const { sample, levels } = this;
    const count = sample.length / 3;
    if (!count) return 0.9;
    levels.fill(0);
    for (let at = 0; at < sample.length; at += 3) {
      const level = Math.max(sample[at] * red, sample[at + 1] * green, sample[at + 2] * blue);
      levels[level < 65535 ? level : 65535] += 1;
    }
    let left = 0.97 * (count - 1);
    let level = 0;
    while (level < 65535 && left >= levels[level]) left -= levels[level++];
    return 0.9 / Math.max(level / 65535, 1e-4);
  }

  // A picture as ImageData, so many times smaller. Without an illuminant: the camera's own colors.
  develop(illuminant, matrix, times = 1) {
    const gains = illuminant ? illuminant.map((value) => illuminant[1] / value) : [1, 1, 1];
    const least = Math.min(...gains);
    const multipliers = gains.map((gain) => gain / least);
    const exposure = this.exposure(multipliers);
    const colors = (illuminant && matrix ? matrix : IDENTITY).map((value) => value * exposure);
    const { rgb, flags, width, height } = this.shrunk(times);
    const image = this.blank(width, height);
    const out = new Uint32Array(image.data.buffer);
    const [red, green, blue] = multipliers.map((value) => value / 65535);
    const [a, b, c, d, e, f, g, h, i] = colors.map((value) => (value * STEPS) / BRIGHTEST);
    for (let at = 0, from = 0; at < out.length; at += 1, from += 3) {
      const r = rgb[from] * red;
      const n = rgb[from + 1] * green;
      const u = rgb[from + 2] * blue;
      let p = a * r + b * n + c * u;
      let q = d * r + e * n + f * u;
      let s = g * r + h * n + i * u;
      p = p > 0 ? (p < STEPS ? p : STEPS) : 0;
      q = q > 0 ? (q < STEPS ? q : STEPS) : 0;
      s = s > 0 ? (s < STEPS ? s : STEPS) : 0;
      const brightest = Math.max(rgb[from], rgb[from + 1], rgb[from + 2]);
      if (brightest > NEARLY_CLIPPED || flags[at] & CLIPPED) {
        const white = whiten(flags[at] & CLIPPED ? 65535 : brightest, Math.min(r, n, u));
        p += (STEPS - p) * white;
        q += (STEPS - q) * white;
        s += (STEPS - s) * white;
      }
      out[at] = 0xff000000 | (ENCODED[s | 0] << 16) | (ENCODED[q | 0] << 8) | ENCODED[p | 0];
    }
    return image;
  }
}

function shrink({ rgb, flags, width, height }, times) {
  const [wide, high] = [Math.max(1, Math.floor(width / times)), Math.max(1, Math.floor(height / times))];
  const [pixels, marks] = [new Uint16Array(3 * wide * high), new Uint8Array(wide * high)];
  const side = Math.min(times, width, height);
  for (let y = 0, to = 0; y < high; y += 1) {
    for (let x = 0; x < wide; x += 1, to += 1) {
      let [red, green, blue, clipped] = [0, 0, 0, 0];
      for (let down = 0; down < side; down += 1) {
        for (let across = 0, at = (y * times + down) * width + x * times; across < side; across += 1, at += 1) {
          red += rgb[3 * at];
          green += rgb[3 * at + 1];
          blue += rgb[3 * at + 2];
          clipped += flags[at] & CLIPPED;
        }
      }
      pixels[3 * to] = red / side ** 2;
      pixels[3 * to + 1] = green / side ** 2;
      pixels[3 * to + 2] = blue / side ** 2;
      marks[to] = 2 * clipped > side ** 2 ? CLIPPED : 0;
    }
  }
  return { rgb: pixels, flags: marks, width: wide, height: high };
}

// How white a pixel is shown: the more, the nearer it is to clipping, unless a channel is so dark that it has a color.
function whiten(brightest, darkest) {
  const [low, high] = DARKEST_WHITE;
  const near = (brightest - NEARLY_CLIPPED) / (65535 - NEARLY_CLIPPED);
  return near ** 2 * clamp((darkest - low) / (high - low));
}

// What a camera sees of every light, as c5.photos.plane tabulates it.
const MIREDS = { first: 20, step: 10, count: 59 };
const TINTS = { first: -150, step: 15, count: 21 };
const NUMBERS = 11;

export class Plane {
  constructor(buffer, daylight) {
    this.values = new Float32Array(buffer);
    this.daylight = daylight;
  }

  // Eleven numbers between four places of the table.
  at({ mired, tint }) {
    const [row, down] = between(MIREDS, mired);
    const [column, across] = between(TINTS, tint);
    const start = (row * TINTS.count + column) * NUMBERS;
    const below = start + TINTS.count * NUMBERS;
    const found = new Array(NUMBERS);
    for (let at = 0; at < NUMBERS; at += 1) {
      const upper = this.values[start + at] * (1 - across) + this.values[start + NUMBERS + at] * across;
      const lower = this.values[below + at] * (1 - across) + this.values[below + NUMBERS + at] * across;
      found[at] = upper * (1 - down) + lower * down;
    }
    return found;
  }

  // Where a look takes a light to, as c5.photos.taste.Look.prefer does.
  move(place, { strength, warmer, shift }) {
    const kept = 1 - strength;
    return {
      mired: place.mired + kept * (this.daylight.mired - place.mired) - warmer,
      tint: place.tint + kept * (this.daylight.tint - place.tint) + shift,
    };
  }

  // The illuminant to take out, and the matrix that goes with it. A light that does not move stays itself.
  follow(light, matrix, place, look) {
    const there = this.move(place, look);
    const from = this.at(place);
    const to = this.at(there);
    const illuminant = [
      (light[0] / light[1]) * Math.exp(to[0] - from[0]),
      1,
      (light[2] / light[1]) * Math.exp(to[1] - from[1]),
    ];
    return { illuminant, matrix: matrix.map((value, at) => value + to[at + 2] - from[at + 2]), place: there };
  }
}

function between({ first, step, count }, value) {
  const place = Math.min(Math.max((value - first) / step, 0), count - 1);
  const low = Math.min(Math.floor(place), count - 2);
  return [low, place - low];
}
