"""Following the light of a video: gains for every frame, from its pixels or from the zones of a statistics block.

The model, in log-chroma: the light walks slowly, and each estimate shows it with an error as large as its own
uncertainty says. A Kalman filter combines them. Each frame is also compared with a reference, an earlier frame of the
same view: if for a few frames all zones have changed color alike, the lamp is another; if they have changed in all
directions, there was a cut. Then the filter forgets what it knew. It also does so, in part, if estimates go on
contradicting it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Bools, Float32s, Float64s, gains
from c5.errors import ImageError, check_range
from c5.histograms import Histograms, histogram
from c5.image import LinearImage, check_pixels, shrink
from c5.model import Model, Profile
from c5.zones import average_zones, zone_image

Uv = tuple[float, float]

FRAME_ZONES = 64, 64
"""Frames are averaged to this many rows and columns of zones."""
COMPARED_ZONES = 16, 16
"""A frame is compared with the reference in zones of this grid, whatever the grids of both."""

LAMP_DEG = 2.0
"""The lamp is another if all zones move the light alike by more than this."""
SETTLED_DEG = 0.5
"""The same while the light is on its way."""
ALIKE = 1.0
"""Half of the zones may differ from a common change by this share of it."""
CUT_NATS = 0.3
"""If half of the zones change color by more than this, each in its own way, it is a cut."""
SAME_SCENE = 0.4
"""Frames of one scene are more alike than this: the correlation of their zones' brightness. It stays above this in
another light and with other shadows."""
SAME_VIEW = 0.8
SAME_VIEW_NATS = 0.1
"""The reference is replaced once frames are less alike than this, or half of the zones have changed color by more."""
CARRIES = 0.7
"""This share of the common change until then is added to the changes from the new one."""
FEWEST_ZONES = 0.2
"""Frames can be compared if this share of their zones counts in both."""
LASTS = 3
"""A change is believed at the third frame in a row that shows it: a flash or a flicker is none."""

WALK_NATS = 0.03
"""The standard deviation of the light's walk in a second."""
CORRELATION = 10.0
"""Estimates of neighboring frames err alike: this many say as much as one."""
UNKNOWN = 1.0
"""The variance of an unknown light, in nats squared."""
LEAST_DEG = 0.1
"""No estimate is more certain."""
CONTRADICTS = 0.7
"""Estimates contradict the filter if they go on being off by this many standard deviations to one side."""
AWAY_DEG = 1.0
"""The gains are on their way while they are farther from the light than this."""
MOVING_EVERY = 3
"""While the light is on its way, one in this many frames is estimated."""

ROLL = 24
"""The profile is learned from at most this many frames."""
FEWEST = 4
"""It is used from this many frames on."""
LIKENESS = 0.85
"""No two of its frames are more alike than this, by the Bhattacharyya coefficient of their histograms."""


class State(Enum):
    """What a tracker is doing."""

    WAITING = "waiting"
    """No usable frame has come yet: the gains are 1."""
    STEADY = "steady"
    FOLLOWING = "following"
    """The light has changed, and the gains are on their way to the new one."""
    HELD = "held"
    """This frame cannot be used: it is black, saturated, or holds NaN. It changes nothing."""


class Change(Enum):
    """How a frame differs from the reference."""

    NONE = "none"
    VIEW = "view"
    """The camera or something in the picture has moved."""
    LAMP = "lamp"
    CUT = "cut"
    UNKNOWN = "unknown"
    """Too few zones count in both."""


class Zones(NamedTuple):
    """A frame, to be compared with others."""

    colors: Float64s  # (3, rows, columns): u, v and the logarithm of green
    counts: Bools


@dataclass(frozen=True)
class Settings:
    """How quick and how calm a tracker is."""

    fps: float = 30.0
    converge: float = 0.3
    """Seconds in which the light goes 95 % of the way once it is known that the lamp is another. After a cut it goes at
    once."""
    stability: float = 0.2
    """Degrees: the light never moves by more from frame to frame, except with another lamp or after a cut."""
    every: int = 10
    """While nothing changes, one in this many frames is estimated; the others are only checked for changes. Estimates
    of neighboring frames err alike, so more of them add little."""
    learn: bool = True
    """Learn the profile of the camera from frames that differ."""

    def __post_init__(self) -> None:
        check_range("fps", self.fps, 1, 1000)
        check_range("converge", self.converge, 0, 60)
        check_range("stability", self.stability, 0.001, 10)
        check_range("every", self.every, 1, 1000)


@dataclass(frozen=True, eq=False)
class Light:
    """The light of a frame, as a tracker gives it."""

    illuminant: Float64s
    """(3,) unit RGB."""
    uncertainty: float
    """Degrees, of what the filter knows; infinite while it waits."""
    state: State
    reason: str = ""
    """Why a frame was held."""

    @property
    def gains(self) -> Float64s:
        """(3,) white-balance multipliers, green = 1."""
        return gains(self.illuminant)


@dataclass(eq=False)
class Tracker:
    """Gains for each frame of a video. Frames may change their size, and frames and zones may alternate."""

    model: Model
    profile: Profile | None = None
    """The camera's profile, if it is known; what is learned is added to it."""
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if self.profile is not None:
            self.model.check_profile(self.profile)
        self._roll: list[Histograms] = []
        self._pooled = self._learned = self.profile  # with all frames of the roll; and as far as it is used
        self._uv: Uv = (0.0, 0.0)  # what the filter knows of the light,
        self._variance = math.inf
        self._shown: Uv | None = self._uv  # and where the gains are on their way there; None if nowhere yet
        self._reference: Zones | None = None
        self._carried: Uv = (0.0, 0.0)  # by how much the light had changed before it
        self._changed = 0  # frames in a row that differ from it
        self._toward: Uv = (0.0, 0.0)  # by how much all zones of the last one did
        self._pull: Uv = (0.0, 0.0)  # where the last estimates were, in standard deviations from what was known
        self._moving = 0  # frames for which the light may still go as far as it wants
        self._until_next = 0  # frames until the next estimate

    def update(self, frame: LinearImage | ArrayLike) -> Light:
        """The light of the next frame: linear camera RGB (height, width, 3), as `c5.Model.estimate` takes it."""
        try:
            image = shrink(frame if isinstance(frame, LinearImage) else check_pixels(frame))
        except ImageError as error:
            return self._hold(str(error))
        small = average_zones(image, *FRAME_ZONES) if image.rgb.size > 3 * 64 * 64 else image
        return self._follow(small, image.clipped)

    def update_zones(
        self, means: ArrayLike, counts: ArrayLike | None = None, saturated: ArrayLike | None = None
    ) -> Light:
        """The same from the zones of the next frame, as `c5.Model.estimate_zones` takes them."""
        try:
            image = zone_image(means, counts, saturated)
        except ImageError as error:
            return self._hold(str(error))
        return self._follow(image, image.clipped)

    def _hold(self, reason: str) -> Light:
        return self._light(State.WAITING if math.isinf(self._variance) else State.HELD, reason)

    def _light(self, state: State, reason: str = "") -> Light:
        uncertainty = math.degrees(math.sqrt(self._variance) * _turn(self._uv))
        return Light(np.array(_rgb(self._shown or self._uv)), uncertainty, state, reason)

    def _follow(self, image: LinearImage, clipped: Bools) -> Light:
        if not _in_range(image, self.model.grid.limit).any():
            return self._hold("nothing in the frame counts: all of it is black, saturated, masked or without a channel")
        believed = self._look_for_changes(image, clipped)
        self._variance += WALK_NATS**2 / self.settings.fps
        if believed and self._until_next <= 0:
            self._estimate(image)
        self._until_next -= 1
        self._move()
        away = self._moving or _angle(self._shown or self._uv, self._uv) > AWAY_DEG
        return self._light(State.FOLLOWING if away else State.STEADY)

    def _look_for_changes(self, image: LinearImage, clipped: Bools) -> bool:
        """Forget the light where the lamp was changed or the scene was cut. Whether the frame may be estimated."""
        small = average_zones(image, *COMPARED_ZONES)
        seen = Zones(_colors(small.rgb), _in_range(small, self.model.grid.limit) & ~_touched(clipped))
        if self._reference is None:
            self._reference = seen
            return True
        change, toward = self._compare(seen, self._reference)
        if change in (Change.NONE, Change.VIEW):
            self._changed = 0
            if change is Change.VIEW:
                self._reference = seen
                self._carried = CARRIES * toward[0], CARRIES * toward[1]
            return True
        turned_back = change is Change.LAMP and toward[0] * self._toward[0] + toward[1] * self._toward[1] < 0
        self._changed = 1 if turned_back else self._changed + 1
        self._toward = toward
        if self._changed < LASTS:
            return False
        self._reference, self._changed, self._carried = seen, 0, (0.0, 0.0)
        if change is not Change.UNKNOWN:
            self._variance = UNKNOWN
            self._until_next = 0
        if change is Change.LAMP:
            self._moving = math.ceil(2 * self.settings.converge * self.settings.fps)
        if change is Change.CUT:
            self._moving = 0
            self._shown = None
        return True

    def _compare(self, seen: Zones, reference: Zones) -> tuple[Change, Uv]:
        """How a frame differs from the reference, and the change of color that its zones have in common."""
        both = seen.counts & reference.counts
        if both.mean() < FEWEST_ZONES:
            return Change.UNKNOWN, (0.0, 0.0)
        now, then = seen.colors[:, both], reference.colors[:, both]
        change = now[:2] - then[:2]
        common = np.median(change, axis=1)
        apart = float(np.median(np.abs(change - common[:, None]).max(axis=0)))
        u, v = (common + self._carried).tolist()
        likeness = _likeness(now[2], then[2])
        turn = _angle((self._uv[0] + u, self._uv[1] + v), self._uv)
        turned = turn > (SETTLED_DEG if self._moving else LAMP_DEG)
        if likeness > SAME_SCENE and turned and apart < ALIKE * math.hypot(u, v):
            return Change.LAMP, (u, v)
        if apart > CUT_NATS or (likeness < SAME_SCENE and (turned or apart > SAME_VIEW_NATS)):
            return Change.CUT, (u, v)
        return Change.VIEW if apart > SAME_VIEW_NATS or likeness < SAME_VIEW else Change.NONE, (u, v)

    def _estimate(self, image: LinearImage) -> None:
        histograms = histogram(image, self.model.grid)
        self._learn(histograms)
        found = self.model.estimate_histogram(histograms, self._learned)
        u, v = found.uv.tolist()
        degrees = max(found.uncertainty or 0, LEAST_DEG)
        error = (math.radians(degrees) / _turn((u, v))) ** 2
        between = min(MOVING_EVERY if self._moving else self.settings.every, self.settings.every)
        self._until_next = between
        if math.isinf(self._variance):
            self._uv = self._shown = u, v
            self._variance = error
            return
        noise = error * max(1.0, CORRELATION / between)
        off = u - self._uv[0], v - self._uv[1]
        expected = math.sqrt(self._variance + noise)
        self._pull = (self._pull[0] + off[0] / expected) / 2, (self._pull[1] + off[1] / expected) / 2
        if math.hypot(*self._pull) > CONTRADICTS:
            self._variance = max(self._variance, off[0] ** 2 + off[1] ** 2)
            self._pull = (0.0, 0.0)
        gain = self._variance / (self._variance + noise)
        self._uv = self._uv[0] + gain * off[0], self._uv[1] + gain * off[1]
        self._variance *= 1 - gain

    def _learn(self, histograms: Histograms) -> None:
        """Take a frame into the roll if it is unlike those that are there."""
        if not self.settings.learn or len(self._roll) >= self.model.takes(ROLL):
            return
        seen = histograms.by_brightness
        if any(float(np.vdot(other.by_brightness, seen)) > LIKENESS for other in self._roll):
            return
        self._roll.append(histograms)
        one = self.model.calibrate_histograms([histograms])
        self._pooled = one if self._pooled is None else self.model.pool([self._pooled, one])
        if len(self._roll) >= FEWEST:
            self._learned = self._pooled

    def _move(self) -> None:
        """Move the gains: to the light at once after a cut, quickly after a switch, and calmly otherwise."""
        if self._shown is None:
            self._shown = self._uv
            return
        (u, v), (to_u, to_v) = self._shown, self._uv
        pace = 1 - math.exp(-3 / max(self.settings.converge * self.settings.fps, 1))
        if self._moving:
            self._moving -= 1
        else:
            turn = _angle((u + pace * (to_u - u), v + pace * (to_v - v)), self._shown)
            pace *= min(1.0, self.settings.stability / max(turn, 1e-9))
        self._shown = u + pace * (to_u - u), v + pace * (to_v - v)

    @property
    def learned(self) -> Profile | None:
        """The profile learned so far, to be saved and given to the next tracker."""
        return self._learned


def _in_range(image: LinearImage, limit: float) -> Bools:
    """(height, width), which pixels count and have a color within the limits of histograms, in nats."""
    red, green, blue = np.moveaxis(image.rgb, 2, 0)
    most, least = math.exp(limit) * green, math.exp(-limit) * green
    inside: Bools = image.counts & (red < most) & (red > least) & (blue < most) & (blue > least)
    return inside


def _touched(clipped: Bools) -> Bools:
    """The compared zones in which anything is clipped: what is left of them has another color."""
    rows, columns = (np.arange(side) * zones // side for side, zones in zip(clipped.shape, COMPARED_ZONES, strict=True))
    touched = np.zeros(COMPARED_ZONES, np.bool_)
    down, right = np.nonzero(clipped)
    touched[rows[down], columns[right]] = True
    return touched


def _likeness(one: Float64s, other: Float64s) -> float:
    """The correlation of two patterns; 1 where one of them has none."""
    one, other = one - one.mean(), other - other.mean()
    a, b, both = float(one @ one), float(other @ other), float(one @ other)
    return 1.0 if min(a, b) < 0.1**2 * one.size else both / math.sqrt(a * b)


def _colors(rgb: Float32s) -> Float64s:
    """(3, rows, columns): u, v and the logarithm of green."""
    red, green, blue = np.log(np.maximum(rgb.astype(np.float64), 1e-6)).transpose(2, 0, 1)
    return np.stack([green - red, green - blue, green])


# A light by itself is three numbers, for which NumPy takes longer than Python.


def _rgb(uv: Uv) -> tuple[float, float, float]:
    """`c5.color.uv_to_rgb` of one light."""
    red, blue = math.exp(-uv[0]), math.exp(-uv[1])
    length = math.hypot(red, 1, blue)
    return red / length, 1 / length, blue / length


def _angle(one: Uv, other: Uv) -> float:
    """`c5.color.angular_error` of two lights."""
    a, b = _rgb(one), _rgb(other)
    apart, together = (math.hypot(*(x + sign * y for x, y in zip(a, b, strict=True))) for sign in (-1, 1))
    return math.degrees(2 * math.atan2(apart, together))


def _turn(uv: Uv) -> float:
    """The angle by which a small step along u, or v, turns a light, in radians per nat: r sqrt(1 - r^2); their mean."""
    red, _, blue = _rgb(uv)
    return (red * math.sqrt(1 - red**2) + blue * math.sqrt(1 - blue**2)) / 2
