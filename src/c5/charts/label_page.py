"""A page for browsing and correcting: every photograph that was looked at, with what was found in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from c5.charts.chart import Reading
from c5.charts.grid import load_opencv
from c5.color import Float64s
from c5.colorimetry.adaptation import srgb_matrix
from c5.colorimetry.temperature import show_kelvin
from c5.io.files import write_file
from c5.io.raw import Photograph
from c5.photos.page import embed, make_page
from c5.photos.picture import encode_picture, render, turn
from c5.words import plural

if TYPE_CHECKING:
    from c5.charts.labeling import Label

PAGE = "labels.html"
WIDTH = 480
"""The longer side of a picture, in pixels."""
FOUND, REFUSED = (40, 200, 90), (235, 70, 40)

STYLE = """
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 20px; margin: 20px 0 170px;
  align-items: start; }
article { background: #fff; border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
article > div:last-child { padding: 9px 13px 12px; } article h2 { font-size: 15px; margin: 0; overflow-wrap: anywhere; }
article p { margin: 1px 0 8px; font-size: 13.5px; }
.picture { position: relative; cursor: crosshair; background: #222; }
.picture img { width: 100%; } .picture i { position: absolute; width: 9px;
  height: 9px; margin: -5px; border-radius: 50%; background: #ffd400; border: 1px solid #000; }
.refused h2::before { content: "refused "; color: #c33d1e; }
.none h2::before { content: "no chart "; color: var(--faint); }
nav { margin: 14px 0; } nav button { margin-right: 6px; }
footer { position: fixed; left: 0; right: 0; bottom: 0; background: #fffef9; border-top: 1px solid var(--line);
  padding: 10px 28px 12px; } footer textarea { width: 100%; height: 66px; font: 12.5px/1.4 ui-monospace, monospace; }
footer label { margin-right: 16px; }
"""

SCRIPT = """
const area = document.querySelector('textarea'), kind = () => document.querySelector('input:checked').value;
const add = line => { area.value += line + '\\n'; area.scrollTop = area.scrollHeight; };
const quoted = path => /[",]/.test(path) ? '"' + path.replaceAll('"', '""') + '"' : path;
for (const shown of document.querySelectorAll('article')) {
  const place = JSON.parse(shown.dataset.place), picture = shown.querySelector('.picture');
  let corners = [];
  if (picture) picture.addEventListener('click', event => {
    const box = picture.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
    if (!corners.length) picture.querySelectorAll('i').forEach(mark => mark.remove());
    const mark = document.createElement('i');
    mark.style.left = 100 * x + '%'; mark.style.top = 100 * y + '%';
    picture.append(mark);
    corners.push(place.slice(0, 2).map((start, k) => Math.round(start + x * place[2 + k] + y * place[4 + k])));
    if (corners.length < 4) return;
    add([quoted(shown.dataset.path), kind(), corners.flat().join(' ')].join(','));
    corners = [];
  });
  shown.querySelector('button').addEventListener('click', () => add(quoted(shown.dataset.path) + ',none,'));
}
for (const button of document.querySelectorAll('nav button')) button.addEventListener('click', () => {
  document.querySelectorAll('nav button').forEach(other => other.classList.toggle('on', other === button));
  for (const shown of document.querySelectorAll('article'))
    shown.hidden = button.dataset.show !== 'all' && !shown.classList.contains(button.dataset.show);
});
"""


def write_labels(folder: Path, labels: Sequence[Label], *, dry_run: bool = False) -> Path:
    """Write labels.html into a folder."""
    states = [_state(label) for label in labels]
    order = sorted(range(len(labels)), key=lambda index: ("refused", "labeled", "none").index(states[index]))
    counts = {name: states.count(name) for name in ("labeled", "refused", "none")}
    buttons = [("all", f"all {len(labels)}"), ("labeled", f"{counts['labeled']} labeled")]
    buttons += [("refused", f"{counts['refused']} refused"), ("none", f"{counts['none']} without a chart")]
    title = f"Labels of {plural(len(labels), 'photograph')}"
    shown = "".join(
        f'<button data-show="{name}"{" class=on" if name == "all" else ""}>{text}</button>' for name, text in buttons
    )
    body = f"""<h1>{title}</h1>
<p class="faint">{escape(str(folder))}: green outlines show whose light was measured, and what is masked.
Click the four corners of the 24 patches, or of a gray card, to correct a photograph.</p>
<nav>{shown}</nav><main>{"".join(_draw(labels[index], states[index]) for index in order)}</main>
<footer><label><input type="radio" name="kind" value="chart" checked> chart</label>
<label><input type="radio" name="kind" value="card"> gray card</label>
<span class="faint">Copy these lines into corrections.csv beside the photographs, and label again.</span>
<textarea spellcheck="false">path,kind,corners\n</textarea></footer>"""
    return write_file(folder / PAGE, make_page(title, body, style=STYLE, script=SCRIPT), dry_run=dry_run)


def draw_label(photograph: Photograph, light: Float64s | None, outlines: list[Float64s]) -> bytes:
    """A JPEG of a photograph, balanced by its label, with outlines in its own pixels."""
    from PIL import Image, ImageDraw

    cv2 = load_opencv()
    image = photograph.image
    height, width = image.rgb.shape[:2]
    share = min(1.0, WIDTH / max(height, width))
    size = max(1, round(width * share)), max(1, round(height * share))
    rgb = cv2.resize(image.rgb, size, interpolation=cv2.INTER_AREA).reshape(size[1], size[0], 3)
    clipped = cv2.resize(image.clipped.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(np.bool_)
    known = light if light is not None else photograph.as_shot
    matrix = None if known is None else srgb_matrix(known, photograph.matrices)
    pixels = render(rgb, np.ones(rgb.shape[:2], np.bool_), known, matrix, clipped.reshape(rgb.shape[:2]))
    picture = Image.fromarray(pixels)
    drawing = ImageDraw.Draw(picture)
    scale = np.array(size) / (width, height)
    for outline in outlines:
        corners = [(float(x), float(y)) for x, y in outline * scale]
        drawing.line([*corners, *corners[:2]], fill=FOUND if light is not None else REFUSED, width=3)
    return encode_picture(turn(np.asarray(picture), photograph.orientation), "picture.jpg")


def _state(label: Label) -> str:
    if label.illuminant is not None:
        return "labeled"
    return "none" if label.picture and label.kind == "none" else "refused"


def _draw(label: Label, state: str) -> str:
    path, result = label.path.as_posix(), label.result
    if isinstance(result, Reading):
        light = " ".join(f"{value:.3f}" for value in result.illuminant)
        light += "" if label.kelvin is None else f", {show_kelvin(label.kelvin)} K"
        words = f"{light}<br>{escape(_describe(label, result))}"
    else:
        words = escape(label.reason)
    picture = f'<div class="picture"><img src="{embed(label.picture)}" alt=""></div>' if label.picture else ""
    place = escape(json.dumps(_place(label)), quote=True)
    button = "<button>Mark as showing no chart</button>"
    return (
        f'<article class="{state}" data-path="{escape(path, quote=True)}" data-place="{place}">{picture}'
        f"<div><h2>{escape(path)}</h2><p>{words}</p>{button}</div></article>"
    )


def _describe(label: Label, result: Reading) -> str:
    told = " by corrections.csv" if label.corrected else ""
    if label.kind == "card":
        return f"gray card{told}, shading {result.shading - 1:.0%}"
    count = f"{len(label.outlines)} charts" if len(label.outlines) > 1 else "chart"
    fits = f"{count}{told}, colors {result.off:.1f}° off, {result.grays} grays"
    return f"{fits}, shading {result.shading - 1:.0%}, light changes {result.turn:.1f}°"


def _place(label: Label) -> list[float]:
    """Where the turned picture begins on the sensor, in pixels, and how far its right and lower edges are."""
    height, width = label.size
    corners = np.array([[(0, 0), (width, 0)], [(0, height), (width, height)]], dtype=np.float64)
    (start, right), (below, _) = turn(corners, label.orientation)
    return [*start.tolist(), *(right - start).tolist(), *(below - start).tolist()]
