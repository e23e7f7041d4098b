"""What Adobe's programs divide out of a DNG, by the published rules of the DNG SDK and nothing of this package.

`dng_color_spec` and `dng_temperature` of the SDK, and the precedence of settings: those of a sidecar or in the file win
over AsShotNeutral, unless they say "As Shot".
"""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

CRS = "{http://ns.adobe.com/camera-raw-settings/1.0/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"

# Mireds, u, v and slope of isotemperature lines: Wyszecki and Stiles, "Color Science", with the misprint of 325 mireds.
LINES = np.fromstring(
    """
    0 .18006 .26352 -.24341   10 .18066 .26589 -.25479   20 .18133 .26846 -.26876   30 .18208 .27119 -.28539
    40 .18293 .27407 -.30470   50 .18388 .27709 -.32675   60 .18494 .28021 -.35156   70 .18611 .28342 -.37915
    80 .18740 .28668 -.40955   90 .18880 .28997 -.44278   100 .19032 .29326 -.47888   125 .19462 .30141 -.58204
    150 .19962 .30921 -.70471   175 .20525 .31647 -.84901   200 .21142 .32312 -1.0182   225 .21807 .32909 -1.2168
    250 .22511 .33439 -1.4512   275 .23247 .33904 -1.7298   300 .24010 .34308 -2.0637   325 .24702 .34655 -2.4681
    350 .25591 .34951 -2.9641   375 .26400 .35200 -3.5814   400 .27218 .35407 -4.3633   425 .28039 .35577 -5.3762
    450 .28863 .35714 -6.7262   475 .29685 .35823 -8.5955   500 .30505 .35907 -11.324   525 .31320 .35968 -15.628
    550 .32129 .36011 -23.325   575 .32931 .36038 -40.770   600 .33724 .36051 -116.45
    """,
    sep=" ",
).reshape(31, 4)

LIGHTS = {17: 2850.0, 21: 6500.0, 23: 5000.0}


def camera_white(dng: bytes, sidecar: bytes | None = None) -> Numbers:
    """Camera RGB of white, the largest 1."""
    with tifffile.TiffFile(io.BytesIO(dng)) as file:
        tags = {tag.code: tag.value for tag in file.pages.first.tags}
    settings = _settings(tags.get(700)) | _settings(sidecar)
    if settings.get("WhiteBalance", "As Shot") != "As Shot":
        return _white(tags, _temperature_to_xy(float(settings["Temperature"]), float(settings["Tint"])))
    if 50728 in tags:
        return _white(tags, _neutral_to_xy(tags, _reals(tags[50728])))
    return _white(tags, _reals(tags[50729]))


def _settings(xmp: bytes | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if xmp is None:
        return found
    for description in ElementTree.fromstring(xmp.rstrip(b"\0")).iterfind(f".//{RDF}RDF/{RDF}Description"):
        pairs = [*description.attrib.items(), *((child.tag, (child.text or "").strip()) for child in description)]
        found |= {name.removeprefix(CRS): value for name, value in pairs if name.startswith(CRS)}
    return found


def _reals(value: Any) -> Numbers:
    """Numbers of rationals."""
    tops, bottoms = np.reshape(value, (-1, 2)).T.astype(np.float64)
    return np.asarray(tops / bottoms)


def _xyz_to_camera(tags: dict[int, Any], xy: Numbers) -> Numbers:
    analog = np.diag(_reals(tags[50727])) if 50727 in tags else np.eye(3)
    calibrated = []
    for color, unit, light in ((50721, 50723, 50778), (50722, 50724, 50779)):
        if color in tags:
            individual = _reals(tags[unit]).reshape(3, 3) if unit in tags else np.eye(3)
            calibrated.append((LIGHTS[tags[light]], analog @ individual @ _reals(tags[color]).reshape(3, 3)))
    if len(calibrated) == 1:
        return np.asarray(calibrated[0][1])
    (warm, first), (cold, second) = sorted(calibrated, key=lambda pair: pair[0])
    kelvin = _xy_to_kelvin(xy)
    weight = float(np.clip((1 / kelvin - 1 / cold) / (1 / warm - 1 / cold), 0, 1))
    return np.asarray(weight * first + (1 - weight) * second)


def _white(tags: dict[int, Any], xy: Numbers) -> Numbers:
    x, y = xy
    white = _xyz_to_camera(tags, xy) @ [x / y, 1, (1 - x - y) / y]
    return np.asarray(np.clip(white / white.max(), 0.001, 1))


def _neutral_to_xy(tags: dict[int, Any], neutral: Numbers) -> Numbers:
    last = np.array([0.3457, 0.3585])
    for turn in range(30):
        xyz = np.linalg.inv(_xyz_to_camera(tags, last)) @ neutral
        following = xyz[:2] / xyz.sum()
        if np.abs(following - last).sum() < 1e-7:
            return np.asarray(following)
        last = (last + following) / 2 if turn == 29 else following
    return last


def _xy_to_kelvin(xy: Numbers) -> float:
    x, y = xy
    u, v = 2 * x / (1.5 - x + 6 * y), 3 * y / (1.5 - x + 6 * y)
    last = 0.0
    for index in range(1, 31):
        mireds, at_u, at_v, slope = LINES[index]
        below = ((v - at_v) - slope * (u - at_u)) / np.hypot(1, slope)
        if below <= 0 or index == 30:
            part = 0.0 if index == 1 else -min(below, 0) / (last - min(below, 0))
            return float(1e6 / (LINES[index - 1][0] * part + mireds * (1 - part)))
        last = below
    raise AssertionError


def _temperature_to_xy(kelvin: float, tint: float) -> Numbers:
    mireds = 1e6 / kelvin
    index = next(i for i in range(30) if mireds < LINES[i + 1][0] or i == 29)
    low, high = LINES[index], LINES[index + 1]
    part = (high[0] - mireds) / (high[0] - low[0])
    directions = [np.array([1, line[3]]) / np.hypot(1, line[3]) for line in (low, high)]
    along = directions[0] * part + directions[1] * (1 - part)
    u, v = low[1:3] * part + high[1:3] * (1 - part) + along / np.hypot(*along) * tint / -3000
    return np.asarray(np.array([1.5 * u, v]) / (u - 4 * v + 2))
