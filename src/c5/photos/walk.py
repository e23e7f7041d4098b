"""The light of a sequence as a random walk, seen through estimates.

The model, in log-chroma:

- From one frame to the next the light walks: the change is normal, its variance grows with the time between them. Now
  and then it jumps: a lamp is switched on, a cloud parts.
- Each frame shows it with a normal error, as large as a share of the estimate's own uncertainty: the rest of the
  uncertainty is common to all frames, and no smoothing can remove it. Now and then the error is several times as large.

How fast the light walks and which share flickers is found from the sequence itself: each of a few speeds and shares is
weighted by its likelihood. So are the ways to tell jumps and large errors from the walk; the likeliest are kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, rgb_to_uv, uv_to_rgb

SPEEDS = 0.0025 * 2.0 ** np.arange(6)
"""Standard deviations of the walk in a usual pause, in nats."""
SHARES = np.array([0.125, 0.25, 0.5, 1.0])
"""Shares of the uncertainty that flicker."""
JUMP, JUMPS = 0.4, 0.01
"""How far the light jumps, in nats, and how often."""
STRAY, STRAYS = 5.0, 0.1
"""How many times as large the error of a frame may be, and how often."""
KEPT = 8
"""Ways to explain the sequence so far, for each speed and share."""

LEAST_DEG = 0.1
"""No estimate is more certain."""

UNKNOWN = 100.0  # variance of the light before the first frame
ODDS = np.log(np.outer([1 - JUMPS, JUMPS], [1 - STRAYS, STRAYS]))
STRETCH = np.array([[1.0], [STRAY**2]])


def follow_light(seen: Float64s, uncertainty: ArrayLike, pauses: ArrayLike) -> Float64s:
    """The light of each frame, as illuminants (n, 3), given those that are seen (n, 3).

    `uncertainty` (n,) is that of each frame in degrees, `pauses` (n - 1,) the time between them, 1 for a usual pause.
    A Kalman filter for each speed, share and way to explain the sequence; then the smoother of Rauch, Tung, Striebel.
    """
    seen_uv = rgb_to_uv(seen)
    speed, share = (grid.ravel() for grid in np.meshgrid(SPEEDS, SHARES))
    steps = np.append(1, pauses)[:, None] * speed**2
    steps = np.stack([steps, np.full_like(steps, JUMP**2)], axis=-1)  # (n, settings, walk or jump)
    noise = _noise(seen, uncertainty)[:, None] * share[:, None] ** 2  # (n, settings, 2)

    each = np.arange(speed.size)[:, None]
    mean, variance = np.tile(seen_uv[0], (speed.size, 1, 1)), np.full((speed.size, 1, 2), UNKNOWN)
    score = np.zeros((speed.size, 1))  # log-likelihood, (settings, ways)
    passed = []
    for uv, step, error in zip(seen_uv, steps, noise, strict=True):  # forwards
        before = variance[:, :, None, None] + step[:, None, :, None, None]  # (settings, ways, walk or jump, 1, 2)
        total = before + error[:, None, None, None] * STRETCH  # (settings, ways, walk or jump, usual or stray, 2)
        off = (uv - mean)[:, :, None, None]
        scores = score[:, :, None, None] + ODDS - (np.log(total) + off**2 / total).sum(-1) / 2
        best = np.argsort(-scores.reshape(len(each), -1), axis=1, kind="stable")[:, :KEPT]
        score = scores.reshape(len(each), -1)[each, best]
        gain = before / total
        mean = (mean[:, :, None, None] + gain * off).reshape(len(each), -1, 2)[each, best]
        variance = ((1 - gain) * before).reshape(len(each), -1, 2)[each, best]
        passed.append((mean, variance, best // 4, step[each, best // 2 % 2][..., None]))

    weight = np.exp(score - score.max())[..., None]
    way = np.arange(score.shape[1])[None]
    light = mean
    lights = [light]
    for (mean, variance, *_), (*_, parent, step) in zip(passed[-2::-1], passed[:0:-1], strict=True):  # backwards
        walk, way = step[each, way], parent[each, way]
        mean, variance = mean[each, way], variance[each, way]
        light = mean + variance / (variance + walk) * (light - mean)
        lights.append(light)
    return uv_to_rgb((np.stack(lights[::-1]) * weight).sum((1, 2)) / weight.sum())


def _noise(seen: Float64s, uncertainty: ArrayLike) -> Float64s:
    """(n, 2) variances of u and v for errors of that many degrees.

    Uncertainties are estimates too: each counts half, the mean of the sequence the other half.
    """
    degrees = np.maximum(uncertainty, LEAST_DEG)
    degrees_squared = degrees * np.exp(np.log(degrees).mean())
    squares = seen[:, [0, 2]] ** 2  # du turns the light by r sqrt(1 - r^2) du
    return np.asarray(2 / np.pi * np.radians(1) ** 2 * degrees_squared[:, None] / (squares * (1 - squares)))
