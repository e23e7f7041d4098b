"""Following the light of a video: gains for every frame, from its pixels or from the zones of a statistics block.

The model, in log-chroma: the light walks slowly, and each estimate shows it with an error as large as its own
uncertainty says. A Kalman filter combines them. Two things are detected at once, without waiting for estimates to
agree: if all zones change color alike, a lamp was switched; if they change in all directions, there was a cut. Then
the filter forgets what it knew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

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
"""A frame is compared with the one before it in zones of this grid, whatever the grids of both."""

SWITCH_DEG = 2.0
"""If all zones move the light alike by more than this, a lamp was switched."""
ALIKE = 0.5
"""Half of the zones may differ from a common change by this share of it."""
CUT_NATS = 0.3
"""If half of the zones change color by more than this, each in its own way, it is a cut."""
SAME_SCENE = 0.4
"""Frames of one scene are more alike than this: the correlation of their zones' brightness. It stays above this in
another light and with other shadows."""
FEWEST_ZONES = 0.2
"""Frames are compared if this share of their zones counts in both."""

WALK_NATS = 0.03
"""The standard deviation of the light's walk in a second."""
CORRELATION = 10.0
"""Estimates of neighbouring frames err alike: this many say as much as one."""
UNKNOWN = 1.0
"""The variance of an unknown light, in nats squared."""
LEAST_DEG = 0.1
"""No estimate is more certain."""
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
    """The light has changed and is on its way to the new one."""
    HELD = "held"
    """This frame cannot be used: it is black, saturated, or holds NaN. The light stays where it was."""


@dataclass(frozen=True)
class Settings:
    """How quick and how calm a tracker is."""

    fps: float = 30.0
    converge: float = 0.3
    """Seconds in which the light goes 95 % of the way after a lamp was switched. After a cut it goes at once."""
    stability: float = 0.2
    """Degrees: the light never moves by more from frame to frame, except after a switched lamp or a cut."""
    every: int = 10
    """While nothing changes, one in this many frames is estimated; the others are only checked for changes. Estimates
    of neighbouring frames err alike, so more of them add little."""
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
        self._pooled = self._learnt = self.profile  # with all frames of the roll; and as far as it is used
        self._uv: Uv = (0.0, 0.0)  # what the filter knows of the light,
        self._variance = math.inf
        self._shown: Uv | None = self._uv  # and where the gains are on their way there; None if nowhere yet
        self._before: tuple[Float64s, Bools] | None = None  # the last frame, in a few zones
        self._moving = 0  # frames for which the light may still go as far as it wants
        self._until_next = 0  # frames until the next estimate

    def update(self, frame: LinearImage | ArrayLike) -> Light:
        """The light of the next frame: linear camera RGB (height, width, 3), as `c5.Model.estimate` takes it."""
        try:
            image = shrink(frame if isinstance(frame, LinearImage) else check_pixels(frame))
        except ImageError as error:
            return self._hold(error)
        return self._follow(average_zones(image, *FRAME_ZONES) if image.rgb.size > 3 * 64 * 64 else image)

    def update_zones(
        self, means: ArrayLike, counts: ArrayLike | None = None, saturated: ArrayLike | None = None
    ) -> Light:
        """The same from the zones of the next frame, as `c5.Model.estimate_zones` takes them."""
        try:
            image = zone_image(means, counts, saturated)
        except ImageError as error:
            return self._hold(error)
        return self._follow(image)

    def _hold(self, error: ImageError) -> Light:
        waiting = math.isinf(self._variance)
        return self._light(State.WAITING if waiting else State.HELD, str(error))

    def _light(self, state: State, reason: str = "") -> Light:
        return Light(np.array(_rgb(self._shown or self._uv)), self._uncertainty, state, reason)

    def _follow(self, image: LinearImage) -> Light:
        if not image.counts.any():
            return self._hold(ImageError("nothing in the frame counts: all of it is black, saturated or masked"))
        self._look_for_changes(image)
        self._variance += WALK_NATS**2 / self.settings.fps
        if self._until_next <= 0:
            try:
                self._estimate(image)
            except ImageError as error:
                return self._hold(error)
        self._until_next -= 1
        self._move()
        return self._light(State.FOLLOWING if self._moving else State.STEADY)

    def _look_for_changes(self, image: LinearImage) -> None:
        """Forget the light where a lamp was switched or the scene was cut."""
        small = average_zones(image, *COMPARED_ZONES)
        before, self._before = self._before, (_colors(small.rgb), small.counts)
        if before is None or math.isinf(self._variance):
            return
        both = self._before[1] & before[1]
        if both.mean() < FEWEST_ZONES:
            return
        now, then = self._before[0][:, both], before[0][:, both]
        change = now[:2] - then[:2]
        common = np.median(change, axis=1)
        apart = float(np.median(np.abs(change - common[:, None]).max(axis=0)))
        u, v = common.tolist()
        there = self._uv[0] + u, self._uv[1] + v
        same_scene = _likeness(now[2], then[2]) > SAME_SCENE
        if same_scene and _angle(there, self._uv) > SWITCH_DEG and apart < ALIKE * math.hypot(u, v):
            self._forget(frames=math.ceil(2 * self.settings.converge * self.settings.fps))
            self._uv = there  # where it must be, until an estimate says better
        elif not same_scene or apart > CUT_NATS:
            self._forget(frames=0)
            self._shown = None

    def _forget(self, frames: int) -> None:
        self._variance = UNKNOWN
        self._moving = frames
        self._until_next = 0

    def _estimate(self, image: LinearImage) -> None:
        histograms = histogram(image, self.model.grid)
        self._learn(histograms)
        found = self.model.estimate_histogram(histograms, self._learnt)
        first = math.isinf(self._variance)
        degrees = max(found.uncertainty or 0, LEAST_DEG)
        u, v = found.uv.tolist()
        error = (math.radians(degrees) / _turn((u, v))) ** 2
        between = MOVING_EVERY if self._moving else self.settings.every
        noise = error * max(1.0, CORRELATION / between)
        gain = 1.0 if first else self._variance / (self._variance + noise)
        self._uv = self._uv[0] + gain * (u - self._uv[0]), self._uv[1] + gain * (v - self._uv[1])
        self._variance = error if first else (1 - gain) * self._variance
        if first:
            self._shown = self._uv
        self._until_next = min(between, self.settings.every)

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
            self._learnt = self._pooled

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
    def _uncertainty(self) -> float:
        """Degrees, of the filter's light."""
        return math.degrees(math.sqrt(self._variance) * _turn(self._uv))

    @property
    def learnt(self) -> Profile | None:
        """The profile learned so far, to be saved and given to the next tracker."""
        return self._learnt


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
