"""A person's look, learned from the balances that the person has set: a small map from neutral to preferred light.

Both are points in the plane of `c5.colorimetry.adaptation`, so that edits of all cameras count together. The map
shifts mired and tint by amounts that are linear in the light's warmth: four numbers, held near zero by a prior that
counts like a few edits, and fitted so that stray edits count less. It is kept if it predicts edits of shoots that it
was not fitted to better than neutral balance does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.color import Float64s, reproduction_error
from c5.colorimetry.adaptation import DAYLIGHT, MiredTint, locate_light
from c5.errors import C5Error, ParameterError, ReadError
from c5.io.files import config_folder, read_bytes, remove_file, write_file
from c5.io.shapes import parse_json
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.files import Failure
from c5.photos.outputs import BUILT_IN
from c5.photos.photo import Photo
from c5.photos.sidecars.marks import Form, holds_own

FEWEST_EDITS, FEWEST_SHOOTS = 30, 3
"""Everything in a shoot may be off in the same way, so one shoot is not enough to learn from."""

CONTRADICTION_DEG = 2.0
"""Sidecars of one photograph that are further apart contradict each other."""

PRIOR_EDITS = 3.0
"""The prior, that nothing is shifted, counts like this many edits."""

BETTER = 0.9
"""The map's errors must be below this fraction of the errors of neutral balance."""

FORMAT = "c5-look-1"
MOST_BYTES = 2**20
_PAIRS = dict.fromkeys(("mired", "tint", "range"), (float, float))
_NUMBERS = {"edits": int, "shoots": int, "error": float, "error_without": float}
LOOK = {"format": str, **_PAIRS, **_NUMBERS, "points": [(float,) * 4]}
MOST_POINTS = 2000


class Edit(NamedTuple):
    """A photograph that a person has balanced."""

    shoot: str
    """The same for photographs that were taken, and balanced, together."""
    neutral: MiredTint
    preferred: MiredTint


@dataclass(frozen=True)
class LearnedLook:
    """A map from neutral light to preferred light, and what it was learned from."""

    mired: tuple[float, float]
    """The shift in daylight, and by how much it grows with every 100 mireds."""
    tint: tuple[float, float]
    range: tuple[float, float]
    """The mireds of the edits. Light outside this range is shifted like the nearest inside."""
    edits: int
    shoots: int
    error: float = math.nan
    """How far edits of other shoots are from what the map predicts, on average, in mireds or tints."""
    error_without: float = math.nan
    """The same for neutral balance."""
    points: tuple[tuple[float, float, float, float], ...] = ()
    """Mired and tint of the neutral and of the preferred light of edits, for plots."""

    @property
    def summary(self) -> str:
        """What it was learned from, and how good it is."""
        return (
            f"{self.edits} balances of {self.shoots} shoots; those of other shoots are missed by {self.error:.1f} "
            f"mireds, by {self.error_without:.1f} without it"
        )

    def prefer(self, light: MiredTint) -> MiredTint:
        """The light to take out of a photograph in this light."""
        warmth = (min(max(light.mired, self.range[0]), self.range[1]) - DAYLIGHT.mired) / 100
        shift = [start + slope * warmth for start, slope in (self.mired, self.tint)]
        return MiredTint(light.mired + shift[0], light.tint + shift[1])


def read_edits(paths: Sequence[Path], settings: Settings) -> Iterator[Edit | Failure]:
    """The photographs whose sidecars hold a balance that a person set, and what is wrong with others.

    A balance that c5 wrote does not count, unless the person chose it or has changed it since. If two sidecars of a
    photograph contradict each other, neither counts.
    """
    sidecars = {path: found for path in paths if (found := _find_sidecars(path))}
    for result in balance(paths, settings, wanted=sidecars):
        if isinstance(result, Failure):
            yield result
            continue
        lights: dict[Path, Float64s] = {}
        for place, form in sidecars[result.path]:
            try:
                light = _read_balance(form, read_bytes(place), result.photo)
            except C5Error as error:
                yield Failure.of(place, error)
                continue
            lights |= {} if light is None else {place: light}
        if lights:
            yield _compare(result, lights)


def _find_sidecars(path: Path) -> list[tuple[Path, Form]]:
    forms = ((output.name(path), output.form) for output in BUILT_IN.values())
    places = [(path.with_name(name), form()) for name, form in forms if form is not None]
    return [(place, form) for place, form in places if place.is_file()]


def _read_balance(form: Form, sidecar: bytes, photo: Photo) -> Float64s | None:
    """The light that a person took out of a photograph; None if nobody chose it."""
    if holds_own(form, sidecar) or not form.is_custom(sidecar, photo.as_shot):
        return None
    return form.read_illuminant(sidecar, photo)


def _compare(result: Balance, lights: dict[Path, Float64s]) -> Edit | Failure:
    (first, light), *others = lights.items()
    for place, other in others:
        apart = float(reproduction_error(light, other))
        if apart > CONTRADICTION_DEG:
            both = f"{first.name} and {place.name} are {apart:.1f}° apart"
            return Failure(result.path, f"{result.path}: its sidecars contradict each other: {both}; neither counts")
    photo = result.photo
    day = "" if photo.time is None else f"{photo.time:%Y-%m-%d}"
    try:
        places = [locate_light(each, photo.need_matrices()) for each in (result.illuminant, light)]
    except C5Error as error:
        return Failure.of(result.path, error)
    return Edit(f"{result.path.parent} {day}", *places)


def learn_look(edits: Sequence[Edit]) -> LearnedLook:
    """The look of a person; a `ParameterError` if there are too few edits, or if it is not better than none."""
    if len(edits) < FEWEST_EDITS:
        raise ParameterError(
            f"balances that were set by hand: {len(edits)} found, {FEWEST_EDITS} are needed to learn a look from them"
        )
    shoots = np.unique([edit.shoot for edit in edits], return_inverse=True)[1]
    count = int(shoots.max()) + 1
    if count < FEWEST_SHOOTS:
        raise ParameterError(
            f"the balances that were set by hand are of {count} shoots, by folder and day: {FEWEST_SHOOTS} are "
            "needed to tell a look from what was special about a shoot"
        )
    neutral, preferred = (np.array([getattr(edit, name) for edit in edits]) for name in ("neutral", "preferred"))
    missed = np.empty(len(edits))
    for shoot in range(count):
        look = _fit(neutral[shoots != shoot], preferred[shoots != shoot])
        for index in np.flatnonzero(shoots == shoot):
            missed[index] = math.dist(look.prefer(MiredTint(*neutral[index])), preferred[index])
    missed_without = np.hypot(*(preferred - neutral).T)
    if not missed.mean() < BETTER * missed_without.mean():
        raise ParameterError(
            f"no look is better than neutral balance: edits are {missed_without.mean():.1f} mireds from that on "
            f"average, and {missed.mean():.1f} from what the edits of other shoots predict; nothing is kept"
        )
    points = np.round(np.hstack([neutral, preferred])[:MOST_POINTS], 1).tolist()
    return replace(
        _fit(neutral, preferred),
        shoots=count,
        error=round(float(missed.mean()), 2),
        error_without=round(float(missed_without.mean()), 2),
        points=tuple(map(tuple, points)),
    )


def _fit(neutral: Float64s, preferred: Float64s) -> LearnedLook:
    """Least squares with a prior at no shift, repeated with less weight for edits far from the line (Huber)."""
    shifts = preferred - neutral
    lines = np.stack([np.ones(len(neutral)), (neutral[:, 0] - DAYLIGHT.mired) / 100], axis=1)
    weights = np.ones(len(neutral))
    for _ in range(10):
        weighed = lines * weights[:, None]
        found = np.linalg.solve(weighed.T @ lines + PRIOR_EDITS * np.eye(2), weighed.T @ shifts)
        away = np.hypot(*(shifts - lines @ found).T)
        weights = np.minimum(1, 1.5 * np.median(away) / np.maximum(away, 1e-9))
    mired, tint = ((float(start), float(slope)) for start, slope in found.round(3).T)
    low, high = neutral[:, 0].min(), neutral[:, 0].max()
    return LearnedLook(mired, tint, (round(float(low), 1), round(float(high), 1)), len(neutral), 0)


def look_path() -> Path:
    """Where the learned look is kept."""
    return config_folder() / "look.json"


def load_look() -> LearnedLook:
    """The learned look."""
    path = look_path()
    if not path.exists():
        raise ReadError(f"{path}: no look is learned yet; learn one from your edits")
    data = read_bytes(path)[:MOST_BYTES]
    try:
        content = parse_json(data, LOOK)
        if content.pop("format") != FORMAT or len(content) >= len(LOOK):
            raise ReadError("another format")
    except ReadError:
        raise ReadError(f"{path}: is not a learned look; remove it, and learn one from your edits") from None
    content |= {key: tuple(content[key]) for key in _PAIRS}
    return LearnedLook(**content | {"points": tuple(map(tuple, content["points"]))})


def save_look(look: LearnedLook) -> Path:
    """Keep a look, in place of an earlier one."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in ({"format": FORMAT} | asdict(look)).items()]
    return write_file(look_path(), ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def forget_look() -> bool:
    """Remove the learned look. Returns whether there was one."""
    if not look_path().exists():
        return False
    load_look()  # nothing else is removed
    remove_file(look_path())
    return True
