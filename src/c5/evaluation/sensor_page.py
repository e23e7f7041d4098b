"""The report on a sensor: one page with pictures."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from c5.color import Float64s, rgb_to_uv
from c5.colorimetry.adaptation import srgb_matrix
from c5.colorimetry.temperature import show_kelvin
from c5.evaluation.sensor import ALONE, PROFILED, Sensor, Shot, advise
from c5.metrics import summarize
from c5.photos.page import embed, make_page, make_table
from c5.photos.picture import encode_picture, fit, render, turn
from c5.plotting import encode_figure, new_plot
from c5.words import plural

WORST = 6
"""Shots that are shown."""
SHOWN_METHODS = 5
"""Methods whose errors are drawn: the model's, and the best of the others."""
WIDTH = 360
MARKED_KELVINS = (2500, 3200, 4000, 5000, 6500, 9000)
FAINT, BLUE, ORANGE = "#78766f", "#2b6ca3", "#d9731a"

STYLE = """
.cards { display: flex; gap: 14px; flex-wrap: wrap; margin: 18px 0 6px; }
.cards div { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 10px 18px 12px; }
.cards b { display: block; font-size: 25px; font-weight: 600; } .cards span { color: var(--faint); font-size: 13.5px; }
.shots { display: grid; grid-template-columns: repeat(3, 1fr); gap: 4px 6px; } .shots p { grid-column: 1 / -1;
  margin: 12px 0 2px; font-size: 14px; } .shots img { width: 100%; border-radius: 4px; }
ol { max-width: 80ch; padding-left: 22px; } li { margin: 5px 0; }
figure img { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 8px; }
"""


def make_report(sensor: Sensor) -> bytes:
    """The content of the report."""
    known, alone = sensor.errors(PROFILED), sensor.errors(ALONE)
    rival = next(method for method in sensor.methods if method not in (ALONE, PROFILED))
    cards = [
        (f"{known.mean():.2f}°", "mean error with a profile"),
        (f"{alone.mean():.2f}°", "from each image alone"),
        (f"{sensor.errors(rival).mean():.2f}°", f"{rival}, the best of the others"),
        (f"{len(sensor.shots)}", "labeled shots"),
    ]
    shown = "".join(f"<div><b>{escape(number)}</b><span>{escape(text)}</span></div>" for number, text in cards)
    advice = "".join(f"<li>{escape(line)}</li>" for line in advise(sensor))
    body = f"""<h1>{escape(sensor.camera)}</h1>
<p class="faint">How well the light is found on this sensor, by the model "{escape(sensor.model)}" and by every
method that needs no training. Errors are angles between lights in camera RGB. A profile is made of other shots than
the one tested.</p>
<div class="cards">{shown}</div>
<h2>What to photograph next</h2><ol>{advice}</ol>{_influence(sensor)}
<h2>Errors by light</h2>{_by_light(sensor)}{_figure(_draw_lights(sensor), "Means of each kind of light, in degrees.")}
<h2>What the profile is made of</h2>{_gain(sensor)}{_effects(sensor)}
<h2>The lights of the shots</h2>
{_figure(_draw_curve(sensor), _curve_caption(sensor))}
<h2>The worst shots</h2>{_worst(sensor)}
<h2>All methods</h2>{_all_methods(sensor)}"""
    return make_page(f"{sensor.camera}: sensor report", body, style=STYLE)


def _by_light(sensor: Sensor) -> str:
    bands = {name: own for name, own in sensor.bands().items() if own.size}
    headings = ["mean error, degrees", *(f"{name} ({own.size})" for name, own in bands.items()), "all"]
    rows = []
    for method in sensor.methods:
        errors = sensor.errors(method)
        rows.append([method, *(f"{errors[own].mean():.2f}" for own in bands.values()), f"{errors.mean():.2f}"])
    return make_table(headings, rows, PROFILED)


def _gain(sensor: Sensor) -> str:
    """A sentence where the profile is of no clear use."""
    gain, low, high = sensor.gain
    if low > 0:
        return ""
    what = "makes estimates worse" if high < 0 else "is of no clear use"
    return (
        f"<p>On these shots, the profile {what}: it {'raises' if gain < 0 else 'lowers'} the mean error by "
        f"{abs(gain):.2f}°. On other shots of this kind, the mean error would change by {-high:+.2f}° to {-low:+.2f}° "
        "(95 %).</p>"
    )


def _effects(sensor: Sensor) -> str:
    alone = sensor.errors(ALONE)
    rows = [["none", f"{alone.mean():.2f}", "", f"{summarize(alone).worst_25:.2f}", ""]]
    for effect in sensor.effects:
        spread = effect.errors.mean(axis=0).std()
        better = (effect.errors.mean(axis=1) < alone).mean()
        worst = summarize(effect.errors.mean(axis=1)).worst_25
        rows.append(
            [str(effect.count), f"{effect.errors.mean():.2f}", f"± {spread:.2f}", f"{worst:.2f}", f"{better:.0%}"]
        )
    headings = ["images in the profile", "mean error", "between profiles", "worst quarter", "shots it makes better"]
    missing = "" if len(sensor.effects) == 4 else "<p class=faint>With more shots there would be more lines.</p>"
    return make_table(headings, rows) + missing + _figure(_draw_effects(sensor), "Bars: profiles of other draws.")


def _influence(sensor: Sensor) -> str:
    most = np.argsort(-sensor.influence)[:3]
    if not sensor.influence[most[0]] > 0:
        return ""
    names = [f"{sensor.shots[i].name} ({sensor.influence[i]:.2f}°)" for i in most if sensor.influence[i] > 0]
    return (
        f"<p class=faint>Left out of the profile, these shots move the estimates of the others most: "
        f"{escape(', '.join(names))}. Make sure that they are typical of the camera.</p>"
    )


def _worst(sensor: Sensor) -> str:
    parts = ["<p>as the camera sees it, balanced by the estimate, balanced by the label</p>"]
    kelvins = sensor.kelvins()
    for index in np.argsort(-sensor.errors(PROFILED))[:WORST]:
        shot = sensor.shots[index]
        light = "" if kelvins is None else f", {show_kelvin(kelvins[index])} K"
        why = _explain(shot)
        parts.append(f"<p><b>{shot.error(PROFILED):.1f}°</b> {escape(shot.name)}{light}{escape(why)}</p>")
        for given in (None, shot.found[PROFILED], shot.light):
            parts.append(f'<img src="{embed(_picture(sensor, shot, given))}" alt="">')
    return f'<div class="shots">{"".join(parts)}</div>'


def _explain(shot: Shot) -> str:
    looks, reasons = shot.looks(PROFILED), []
    if looks.gray < 0.05:
        reasons.append("little in it is gray")
    if looks.one_hue > 0.9:
        reasons.append("its colors are of one hue")
    if looks.gray_estimated > looks.gray:
        reasons.append("more of it looks gray under the estimate than under the label")
    return f": {'; '.join(reasons)}" if reasons else ""


def _picture(sensor: Sensor, shot: Shot, light: Float64s | None) -> bytes:
    matrix = None if light is None else srgb_matrix(light, sensor.matrices)
    small = shot.small
    pixels = render(small.rgb, np.ones(small.rgb.shape[:2], np.bool_), light, matrix, small.clipped)
    return encode_picture(np.asarray(fit(turn(pixels, shot.orientation), WIDTH, WIDTH)), "shot.jpg")


def _all_methods(sensor: Sensor) -> str:
    rows = []
    for method in sensor.methods:
        found = summarize(sensor.errors(method))
        rows.append([method, *(f"{value:.2f}" for value in (found.mean, found.median, found.worst_25, found.maximum))])
    return make_table(["degrees", "mean", "median", "worst quarter", "largest"], rows, PROFILED)


# Drawings


def _figure(figure: Any, caption: str) -> str:
    picture = embed(encode_figure(figure))
    return f'<figure><img src="{picture}" alt=""><figcaption>{escape(caption)}</figcaption></figure>'


def _draw_lights(sensor: Sensor) -> Any:
    bands = {name: own for name, own in sensor.bands().items() if own.size}
    figure, axes = new_plot(9.3, 3.6)
    others = [method for method in sensor.methods if method not in (ALONE, PROFILED)]
    shown = [PROFILED, ALONE, *others[: SHOWN_METHODS - 2]]
    colors = (BLUE, "#8db8d9", "#d9731a", "#e8a86b", "#b9b5aa")
    width = 0.8 / len(shown)
    for index, (method, color) in enumerate(zip(shown, colors, strict=True)):
        errors = sensor.errors(method)
        means = [errors[own].mean() for own in bands.values()]
        axes.bar(
            np.arange(len(bands)) + (index - (len(shown) - 1) / 2) * width, means, width, label=method, color=color
        )
    axes.set_xticks(np.arange(len(bands)), [f"{name}\n{plural(own.size, 'shot')}" for name, own in bands.items()])
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("mean error, degrees")
    axes.legend(frameon=False, fontsize="small")
    return figure


def _draw_effects(sensor: Sensor) -> Any:
    figure, axes = new_plot(9.3, 3.0)
    counts = [0, *(effect.count for effect in sensor.effects)]
    means = [sensor.errors(ALONE).mean(), *(effect.errors.mean() for effect in sensor.effects)]
    spread = [0, *(effect.errors.mean(axis=0).std() for effect in sensor.effects)]
    axes.errorbar(np.arange(len(counts)), means, yerr=spread, marker="o", color=BLUE, capsize=4, linewidth=1.8)
    axes.set_xticks(np.arange(len(counts)), [str(count) if count else "none" for count in counts])
    axes.set(
        xlabel="images in the profile",
        ylabel="mean error, degrees",
        ylim=(0, 1.15 * max(map(sum, zip(means, spread, strict=True)))),
    )
    return figure


def _draw_curve(sensor: Sensor) -> Any:
    figure, axes = new_plot(9.3, 5.4)
    lights = np.array([shot.light for shot in sensor.shots])
    found = np.array([shot.found[PROFILED] for shot in sensor.shots])
    if sensor.matrices is not None:
        low, high = 2000.0, 12000.0
        curve = _ratios(sensor.matrices.illuminant(1e6 / np.linspace(1e6 / high, 1e6 / low, 200)))
        axes.plot(*curve.T, color="#b9b5aa", linewidth=2, label="black bodies and daylight, by the matrices", zorder=1)
        for kelvin in MARKED_KELVINS:
            place = _ratios(sensor.matrices.illuminant(float(kelvin)))
            axes.plot(*place, marker="|", color=FAINT, markersize=9)
            axes.annotate(f"{kelvin} K", place, (6, 6), textcoords="offset points", fontsize=8, color=FAINT)
    for light, estimate in zip(_ratios(lights), _ratios(found), strict=True):
        axes.plot(*np.array([light, estimate]).T, color=ORANGE, linewidth=0.8, alpha=0.7, zorder=2)
    axes.plot(*_ratios(found).T, "x", color=ORANGE, markersize=5, label="estimates", zorder=3)
    axes.plot(*_ratios(lights).T, "o", color=BLUE, markersize=6, label="labels", zorder=4)
    axes.set(xlabel="r / g", ylabel="b / g")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:.2g}")
        axis.set_minor_formatter("{x:.2g}")
    axes.tick_params(which="both", labelsize=8)
    axes.legend(frameon=False, fontsize="small")
    return figure


def _ratios(lights: Float64s) -> Float64s:
    return np.exp(-rgb_to_uv(lights))


def _curve_caption(sensor: Sensor) -> str:
    kelvins = sensor.kelvins()
    ends = [] if kelvins is None else [show_kelvin(end) for end in (kelvins.min(), kelvins.max())]
    span = f" The lights go from {ends[0]} to {ends[1]} K." if ends else ""
    return f"Each line leads from a label to what the model finds with a profile of the other shots.{span}"
