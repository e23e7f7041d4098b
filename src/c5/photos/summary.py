"""A set of balanced photographs for people and programs: rows of numbers, contact sheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from c5.color import Float64s, angular_error, gains
from c5.colorimetry.temperature import show_kelvin
from c5.errors import C5Error, ParameterError
from c5.io.files import printable
from c5.metrics import bound_errors
from c5.photos.balancing import Balance
from c5.photos.photo import Photo
from c5.photos.picture import Frame, Pixels, make_sheet, render, turn

if TYPE_CHECKING:
    from c5.photos.outputs import Output

COLORS = ("illuminant", "gains", "light", "camera_gains")
"""The keys of `describe` that hold three numbers."""


def describe(balance: Balance, outputs: Iterable[Output] = ()) -> dict[str, Any]:
    """What is known of a balance, ready for JSON. Unknown values are None.

    `outputs` are the kinds of files written for it: what their programs cannot hold of it is noted.
    """
    photo = balance.photo
    light = balance.illuminant if balance.light is None else balance.light
    temperature = photo.temperature(balance.illuminant)
    told = photo.tell_light(light, balance.covariance)
    found = {} if told is None else told.as_row()
    angle = None if photo.as_shot is None else float(angular_error(balance.illuminant, photo.as_shot))
    return {
        "file": printable(str(photo.path)),
        "camera": photo.camera,
        "time": None if photo.time is None else photo.time.isoformat(sep=" "),
        "illuminant": _rounded(balance.illuminant),
        "gains": _rounded(gains(balance.illuminant)),
        "kelvin": None if temperature is None else round(temperature.kelvin),
        "tint": None if temperature is None else round(temperature.tint),
        "light": _rounded(light),
        "light_kelvin": found.get("kelvin"),
        "light_tint": found.get("tint"),
        **{key: found.get(key) for key in ("kelvin_low", "kelvin_high", "tint_bound")},
        "look": balance.look or None,
        "uncertainty_deg": _rounded(balance.uncertainty),
        "bound_deg": None if balance.uncertainty is None else round(float(bound_errors(balance.uncertainty)), 4),
        "uncertain": balance.uncertain,
        "by": balance.source,
        "group": balance.group,
        "roll": balance.roll.size,
        "camera_gains": None if photo.as_shot is None else _rounded(gains(photo.as_shot)),
        "camera_angle_deg": _rounded(angle),
        "note": "; ".join(_notes(balance, outputs)) or None,
    }


def _notes(balance: Balance, outputs: Iterable[Output]) -> list[str]:
    """Notes on a balance, each once."""
    temperature = balance.photo.temperature(balance.illuminant)
    kelvin = "" if temperature is None else show_kelvin(temperature.kelvin)
    notes = [] if kelvin.isdecimal() or not kelvin else [f"temperature {kelvin} K: the scale ends there"]
    if balance.look and balance.light is None:
        notes.append(f"look {balance.look}")
    for output in outputs:
        with suppress(C5Error):  # the output itself will report it
            notes.append(output.note(balance))
    return [note for note in dict.fromkeys(notes) if note]


def to_csv(rows: Iterable[Mapping[str, Any]], *, heading: bool = True) -> str:
    """Rows of `describe` as a table, with three columns for each color."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    for index, row in enumerate(rows):
        cells: dict[str, Any] = {}
        for key, value in row.items():
            if key in COLORS:
                cells |= {f"{key}_{color}": number for color, number in zip("rgb", value or [None] * 3, strict=True)}
            else:
                cells[key] = value
        if heading and not index:
            writer.writerow(cells)
        writer.writerow(cells.values())
    return table.getvalue()


def show_pair(photo: Photo, illuminant: Float64s) -> tuple[Pixels, Pixels]:
    """The thumbnail of a photograph as shot and balanced, turned upright."""
    if photo.thumbnail is None:
        raise ParameterError(f"{photo.path}: has no thumbnail; read the photograph with one")
    rgb, mask, clipped = photo.thumbnail
    matrix = photo.srgb_matrix(illuminant)
    before, after = (
        render(rgb.astype(np.float32), mask, light, matrix, clipped) for light in (photo.as_shot, illuminant)
    )
    return turn(before, photo.orientation), turn(after, photo.orientation)


def draw_sheet(title: str, balances: Sequence[Balance]) -> Pixels:
    """A contact sheet of photographs with thumbnails, before and after."""
    frames = [Frame(show_pair(balance.photo, balance.illuminant), _caption(balance)) for balance in balances]
    return make_sheet(title, ["as shot", "balanced"], frames)


def _caption(balance: Balance) -> str:
    found = balance.photo.temperature(balance.illuminant)
    light = "" if found is None else f"{show_kelvin(found.kelvin)} K, tint {round(found.tint):+d}"
    group = "" if balance.group is None else f"   group {printable(balance.group)}"
    return f"{printable(balance.path.name)}   {light}{group}{'   uncertain' if balance.uncertain else ''}"


def _rounded(value: Float64s | float | None) -> Any:
    if value is None:
        return None
    return [round(float(number), 6) for number in value] if isinstance(value, np.ndarray) else round(value, 4)
