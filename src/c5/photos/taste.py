"""The look that a person likes: which part of the light's color stays in the picture, for all photographs or for some.

Taking out the light that was found is neutral balance. A look prefers another light, which is taken out instead. It
moves lights in the plane of `c5.colorimetry.adaptation`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c5.color import Float64s, angular_error
from c5.colorimetry.adaptation import DAYLIGHT, MiredTint, move_light
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import ParameterError

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.learning import LearnedLook

WARM_STRENGTH = 0.6
"""The strength where warmth is kept and none is given."""

WARM_MIRED, ONSET_MIRED = 200.0, 20.0
"""Warm light begins at 5000 K. Twenty mireds further, at 4500 K, half of the warmth beyond that point counts."""

PARTS = {"strength", "keep_warmth"}
"""Fields that say how much of the light stays, as a learned look does: of the two, the more specific counts."""

UNSEEN_DEG = 0.01
"""A look that moves the light by less than this has done nothing."""

MOST_MIRED, MOST_TINT = 300.0, 150.0
"""No look shifts further."""


@dataclass(frozen=True, slots=True)
class Look:
    """What of the light's color stays, and what is added, relative to the automatic balance."""

    strength: float | None = None
    """1 takes all of the light's color out; 0 takes none out, and is the balance for daylight, D55. None is 1, or
    `WARM_STRENGTH` where warmth is kept."""
    keep_warmth: bool = False
    """Whether only light below 5000 K keeps a part of its color: of its warmth, not of its tint."""
    warmer: float = 0
    """Mireds by which the picture becomes warmer; colder below zero."""
    tint: float = 0
    """By how much the picture becomes more magenta, in the units of Adobe's sliders; greener below zero."""
    learned: LearnedLook | None = None
    """What was learned from a person's edits. It decides itself how much of the light stays."""

    def __post_init__(self) -> None:
        if self.strength is not None and not 0 <= self.strength <= 1:
            raise ParameterError(
                f"strength must be from 0 (the light's color stays) to 1 (none does), not {self.strength}"
            )
        for name, most in (("warmer", MOST_MIRED), ("tint", MOST_TINT)):
            value = getattr(self, name)
            if not abs(value) <= most:
                raise ParameterError(f"{name} must be from {-most:.0f} to {most:.0f}, not {value}")
        if self.learned is not None and (self.keep_warmth or self.strength not in (None, 1)):
            raise ParameterError("a learned look decides how much of the light stays; leave out strength and warmth")

    @property
    def kept(self) -> float:
        """The part of the light's color that stays."""
        return 1 - ((WARM_STRENGTH if self.keep_warmth else 1) if self.strength is None else self.strength)

    def prefer(self, light: MiredTint) -> MiredTint:
        """The light to take out of a photograph in this light."""
        mired, tint = light
        if self.keep_warmth:
            warmth = max(mired - WARM_MIRED, 0)
            mired -= self.kept * warmth**2 / (warmth + ONSET_MIRED)
        else:
            mired += self.kept * (DAYLIGHT.mired - mired)
            tint += self.kept * (DAYLIGHT.tint - tint)
        if self.learned is not None:
            mired, tint = self.learned.prefer(light)
        return MiredTint(mired - self.warmer, tint + self.tint)

    def apply(self, illuminant: Float64s, matrices: CameraMatrices) -> Float64s:
        """The illuminant to take out instead of a camera's illuminant."""
        return move_light(illuminant, matrices, self.prefer)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.kept or self.warmer or self.tint or self.learned is not None)

    def __str__(self) -> str:
        parts = []
        if self.kept:
            parts.append(f"{'warmth kept, ' if self.keep_warmth else ''}strength {1 - self.kept:g}")
        parts += ["learned"] if self.learned is not None else []
        parts += [f"{value:+g} {name}" for name, value in (("mired", self.warmer), ("tint", self.tint)) if value]
        return ", ".join(parts)


@dataclass(frozen=True)
class Rule:
    """What a person likes for a camera's photographs, or for those below a folder; for all if neither is named."""

    values: Mapping[str, Any]
    """Fields of `Look`."""
    camera: str | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        Look(**self.values)  # checks the values

    def holds(self, path: Path, camera: str | None) -> bool:
        if self.camera is not None and (camera or "").casefold() != self.camera.casefold():
            return False
        return self.folder is None or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))

    @property
    def rank(self) -> tuple[int, bool]:
        """A deeper folder is more specific than any other, and a camera than none."""
        depth = 0 if self.folder is None else len(Path(os.path.realpath(self.folder)).parts)
        return depth, self.camera is not None


@dataclass(frozen=True)
class Taste:
    """The looks of a person: each value comes from the most specific rule that has it; of equal ones, the last."""

    rules: tuple[Rule, ...] = ()
    always: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Look` that no rule changes."""

    def __post_init__(self) -> None:
        Look(**self.always)
        object.__setattr__(self, "rules", tuple(sorted(self.rules, key=lambda rule: rule.rank)))

    def find(self, path: Path, camera: str | None) -> Look:
        """The look of a photograph."""
        values: dict[str, Any] = {}
        for more in (*(rule.values for rule in self.rules if rule.holds(path, camera)), self.always):
            rivals = PARTS if more.get("learned") else {"learned"} if PARTS & more.keys() else set()
            values = {key: value for key, value in values.items() if key not in rivals}
            values |= more
        return Look(**values)

    def apply(self, balance: Balance) -> Balance:
        """A balance with the look of its photograph. One whose matrices are not known stays neutral, and says so."""
        look = self.find(balance.path, balance.photo.camera)
        if not look:
            return balance
        try:
            preferred = look.apply(balance.illuminant, balance.photo.need_matrices())
        except ParameterError as error:
            reason = str(error).removeprefix(f"{balance.path}: ")
            return replace(balance, look=f"none: {reason}")
        changed = float(angular_error(preferred, balance.illuminant)) > UNSEEN_DEG
        told = str(look) if changed else "nothing to keep"  # of light that is not warm
        return replace(balance, illuminant=preferred, light=balance.illuminant, look=told)
