"""Classical estimators: the light from one image by a rule, with nothing learned.

Every function takes a `LinearImage`, which should have the working size, and returns a unit RGB illuminant. Only pixels
that count matter; the values of the others change nothing. Exposure does not change the answer. Channel gains scale it
by exactly those gains, except for `pca_bright_dark` and `grayness_index`, where this holds approximately.

An image in which a method finds nothing to use, such as edges in a single flat color, gets the gray-world answer. A
channel that is zero everywhere gets a share of `FLOOR`. An image without a single pixel that counts is an `ImageError`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from c5.color import Bools, Float32s, Float64s, angular_error, as_illuminant
from c5.errors import ParameterError, check_range
from c5.image import LinearImage, require_counts

FLOOR = 1e-6
"""No component of an estimate is smaller than this share of the largest."""

TINY = np.float32(np.finfo(np.float32).tiny)
"""Replaces zero as a divisor."""

FLAT = 1e-5
"""Relative contrast below this is rounding error."""


# Means of colors ------------------------------------------------------------------------------------------------------


def gray_world(image: LinearImage) -> Float64s:
    """The mean color, because the world is gray on average.

    Buchsbaum, "A spatial processor model for object color perception", Journal of the Franklin Institute, 1980.
    """
    return _illuminant(_minkowski(_colors(image), 1))


def white_patch(image: LinearImage) -> Float64s:
    """The maximum of each channel (max-RGB), because something in the scene reflects all of the light.

    Land, "The Retinex theory of color vision", Scientific American, 1977.
    """
    return _illuminant(_minkowski(_colors(image), np.inf))


def shades_of_gray(image: LinearImage, *, p: float = 5) -> Float64s:
    """The Minkowski mean of the colors: between gray-world (p = 1) and white-patch (p = infinity).

    `p` from 1 up. Finlayson and Trezzi, "Shades of gray and color constancy", CIC 2004.
    """
    return _illuminant(_minkowski(_colors(image), p))


def general_gray_world(image: LinearImage, *, p: float = 9, sigma: float = 2) -> Float64s:
    """The Minkowski mean of the smoothed image: shades-of-gray of structures larger than noise and highlights.

    `p` from 1 up; `sigma`, of the Gaussian, in pixels from 0.5 to 1000. Barnard, Martin, Coath and Funt, "A comparison
    of computational color constancy algorithms II", IEEE TIP 2002, in the form of van de Weijer et al., IEEE TIP 2007.
    """
    planes, counts = _planes(image)
    return _illuminant(_minkowski(_pick(_smooth(planes, counts, _gaussian(sigma)), counts), p))


# Means of edges -------------------------------------------------------------------------------------------------------


def gray_edge_1(image: LinearImage, *, p: float = 1, sigma: float = 2) -> Float64s:
    """The Minkowski mean of the gradient's length in each channel, because differences are gray on average.

    `p` from 1 up; `sigma`, of the Gaussian, in pixels from 0.5 to 1000. Van de Weijer, Gevers and Gijsenij, "Edge-based
    color constancy", IEEE TIP 2007.
    """
    planes, counts = _planes(image)
    dy, dx = _gradient(_smooth(planes, counts, _gaussian(sigma)))
    edges = _pick(np.sqrt(dy**2 + dx**2), counts)
    return _illuminant(_minkowski(edges, p)) if _any_contrast(edges, image) else gray_world(image)


def gray_edge_2(image: LinearImage, *, p: float = 1, sigma: float = 2) -> Float64s:
    """Like gray-edge-1, with second derivatives: the Frobenius norm of each channel's Hessian.

    `p` from 1 up; `sigma`, of the Gaussian, in pixels from 0.5 to 1000. Van de Weijer, Gevers and Gijsenij, "Edge-based
    color constancy", IEEE TIP 2007.
    """
    planes, counts = _planes(image)
    dyy, dxy, dxx = _hessian(_smooth(planes, counts, _gaussian(sigma)))
    edges = _pick(np.sqrt(dyy**2 + 2 * dxy**2 + dxx**2), counts)
    return _illuminant(_minkowski(edges, p)) if _any_contrast(edges, image) else gray_world(image)


def weighted_gray_edge(
    image: LinearImage, *, p: float = 1, sigma: float = 1, kappa: float = 10, iterations: int = 10
) -> Float64s:
    """Gray-edge with each edge weighted by how specular it is: highlights change along the color of the light.

    Which direction is specular depends on the light, so estimate and weights are updated in turn, starting from plain
    gray-edge. `p` from 1 up; `sigma` in pixels from 0.5 to 1000; `kappa`, the power of the weights, from 0 up (0 is
    plain gray-edge); `iterations` from 1 up, fewer if the estimate settles. Gijsenij, Gevers and van de Weijer,
    "Improving color constancy by photometric edge weighting", IEEE TPAMI 2012.
    """
    check_range("kappa", kappa, 0)
    check_range("iterations", iterations, 1)
    planes, counts = _planes(image)
    dy, dx = (_pick(d, counts) for d in _gradient(_smooth(planes, counts, _gaussian(sigma))))
    squares = dy**2 + dx**2
    edges = np.sqrt(squares)
    if not _any_contrast(edges, image):
        return gray_world(image)
    estimate = _illuminant(_minkowski(edges, p))
    for _ in range(iterations):
        # In white-balanced colors the specular direction is (1, 1, 1) / sqrt(3), and an edge's weight is the share of
        # its length that lies along it.
        balance = (1 / estimate).astype(np.float32)
        specular = ((balance @ dy) ** 2 + (balance @ dx) ** 2) / 3
        weights = (specular / np.maximum(balance**2 @ squares, TINY)) ** (kappa / 2)
        weighted = _minkowski(edges * weights, p)
        if not weighted.any():  # no edge is specular in the least
            break
        previous, estimate = estimate, _illuminant(weighted)
        if angular_error(estimate, previous) < 0.01:
            break
    return estimate


# Choices of pixels ----------------------------------------------------------------------------------------------------


def pca_bright_dark(image: LinearImage, *, percent: float = 3.5) -> Float64s:
    """The first principal component, through the origin, of the brightest and the darkest pixels.

    Brightness is measured along the mean color. Channel gains scale the answer only approximately. `percent` of the
    pixels at either end, from 0.001 to 50. Cheng, Prasad and Brown, "Illuminant estimation for color constancy: why
    spatial-domain methods work and the role of the color distribution", JOSA A 2014.
    """
    check_range("percent", percent, 1e-3, 50)
    colors = _colors(image).astype(np.float64)
    brightness = colors.mean(axis=1) @ colors
    chosen = _lowest(brightness, percent) | _lowest(-brightness, percent)
    _, axes = np.linalg.eigh(colors[:, chosen] @ colors[:, chosen].T)
    return _illuminant(np.abs(axes[:, -1]))


def local_surface_reflectance(image: LinearImage, *, window: int = 51) -> Float64s:
    """The mean color over the mean of local reflectance, which is a pixel over the maximum around it.

    Gray-world assumes that reflectances are gray on average; this estimates how far they are not. `window`, the side of
    the square in which the maximum is taken, in pixels, odd, from 3 up. Gao, Han, Yang, Li and Li, "Efficient color
    constancy with local surface reflectance statistics", ECCV 2014.
    """
    _check_window(window, 3)
    planes, counts = _planes(image)
    reflectance = np.divide(planes, np.maximum(_local_maximum(planes, window), TINY), dtype=np.float32)
    mean, mean_reflectance = _minkowski(_pick(planes, counts), 1), _minkowski(_pick(reflectance, counts), 1)
    return _illuminant(mean / np.maximum(mean_reflectance, FLOOR))


def grayness_index(image: LinearImage, *, percent: float = 0.1, window: int = 7) -> Float64s:
    """The mean color of the grayest pixels: those around which brightness changes but chromaticity does not.

    Pixels with a channel at zero are left out. Channel gains scale the answer only approximately, since brightness is
    the sum of the channels. `percent` of the pixels, from 0.001 to 100; `window`, the side of the square over which
    grayness is averaged, in pixels, odd, from 1 up. Qian, Kämäräinen, Nikkanen and Matas, "On finding gray pixels",
    CVPR 2019.
    """
    check_range("percent", percent, 1e-3, 100)
    _check_window(window, 1)
    planes, counts = _planes(image)
    counts = counts & (planes > 0).all(axis=0)
    if not counts.any():
        return gray_world(image)
    brightness = planes.sum(axis=0)
    log_r, log_b, log_sum = (np.log(x, where=counts, out=np.zeros_like(x)) for x in (planes[0], planes[2], brightness))
    cues = np.stack([*(planes / brightness[counts].mean()), log_r - log_sum, log_b - log_sum])
    dyy, _, dxx = _hessian(_smooth(cues, counts, _gaussian(0.5)))
    contrast = np.abs(dyy + dxx)  # the Laplacian of a Gaussian
    # Flat regions look gray whatever their color, so only pixels with contrast in every channel are used. The paper's
    # threshold is a constant, 1e-4; this one follows the exposure and was chosen on the FFCC images.
    textured = counts & (contrast[:3] > 0.01).all(axis=0)
    if not textured.any():
        return gray_world(image)
    index = _smooth(np.hypot(contrast[3:4], contrast[4:]), textured, np.full(window, 1 / window, np.float32))
    grayest = _lowest(np.maximum(_pick(index, textured)[0], FLAT), percent)  # rounding must not pick the grayest
    return _illuminant(_pick(planes, textured)[:, grayest].mean(axis=1, dtype=np.float64))


METHODS: dict[str, Callable[[LinearImage], Float64s]] = {
    "gray-world": gray_world,
    "white-patch": white_patch,
    "shades-of-gray": shades_of_gray,
    "general-gray-world": general_gray_world,
    "gray-edge-1": gray_edge_1,
    "gray-edge-2": gray_edge_2,
    "weighted-gray-edge": weighted_gray_edge,
    "pca": pca_bright_dark,
    "local-surface-reflectance": local_surface_reflectance,
    "grayness-index": grayness_index,
}
"""The function for each name on the command line."""


# What they share: planes are (channels, height, width), counts is (height, width) -------------------------------------


def _planes(image: LinearImage) -> tuple[Float32s, Bools]:
    """The image channel by channel, zero where a pixel does not count, and which pixels do."""
    counts = require_counts(image)
    return np.multiply(np.moveaxis(image.rgb, -1, 0), counts, order="C"), counts


def _colors(image: LinearImage) -> Float32s:
    """The colors that count, (3, pixels)."""
    return _pick(*_planes(image))


def _pick(planes: Float32s, counts: Bools) -> Float32s:
    """What the planes hold where a pixel counts, (channels, pixels)."""
    # Several times faster than planes[:, counts], which also leaves the pixels of a channel scattered in memory.
    return np.asarray(np.compress(counts.ravel(), planes.reshape(len(planes), -1), axis=1))


def _illuminant(rgb: Float64s) -> Float64s:
    return as_illuminant(np.maximum(rgb, FLOOR * rgb.max()))


def _any_contrast(edges: Float32s, image: LinearImage) -> bool:
    """Whether any channel has edges beyond what rounding leaves in a single flat color."""
    return bool((edges.max(axis=1) > FLAT * _colors(image).mean(axis=1)).any())


def _minkowski(values: Float32s, p: float) -> Float64s:
    """The Minkowski mean (mean of x^p)^(1/p) of each row; p = inf is the maximum."""
    check_range("p", p, 1)
    top = values.max(axis=1, keepdims=True)
    if p == np.inf:
        return np.asarray(top[:, 0], dtype=np.float64)
    shares = values / np.maximum(top, TINY)  # so that no large power underflows
    return np.asarray(top[:, 0] * np.mean(shares**p, axis=1, dtype=np.float64) ** (1 / p))


def _gaussian(sigma: float) -> Float32s:
    """A Gaussian out to three sigma. At least two pixels, so that differences of the smoothed image stay within it."""
    check_range("sigma", sigma, 0.5, 1000)
    radius = int(np.ceil(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return np.asarray(kernel / kernel.sum(), dtype=np.float32)


def _smooth(planes: Float32s, counts: Bools, kernel: Float32s) -> Float32s:
    """Normalized convolution with a separable kernel: at each pixel the weighted mean of those that count around it.

    Borders are replicated. Zero where nothing within reach counts. Differences of the result are free of what lies in a
    hole and still use every pixel beside it; leaving out all that a hole can reach would cost much of some images.
    """
    height, width = counts.shape
    down, across = _convolution(height, kernel), _convolution(width, kernel)
    weight = down @ counts.astype(np.float32) @ across.T
    return np.asarray(down @ (planes * counts) @ across.T / np.maximum(weight, TINY))


def _convolution(n: int, kernel: Float32s) -> Float32s:
    """Convolution with replicated borders as an (n, n) matrix: at the working size faster than a loop over taps."""
    matrix, rows, radius = np.zeros((n, n), np.float32), np.arange(n), len(kernel) // 2
    for offset, tap in enumerate(kernel, -radius):
        matrix[rows, np.clip(rows + offset, 0, n - 1)] += tap
    return matrix


def _gradient(planes: Float32s) -> Float32s:
    """Central differences (d/dy, d/dx), stacked in front."""
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1)), "edge")
    dy = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    dx = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    return np.stack([dy, dx]) * np.float32(0.5)


def _hessian(planes: Float32s) -> Float32s:
    """Second differences (d2/dy2, d2/dydx, d2/dx2), stacked in front."""
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1)), "edge")
    dyy = padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1] - 2 * planes
    dxx = padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2] - 2 * planes
    down = padded[:, 2:] - padded[:, :-2]
    return np.stack([dyy, (down[..., 2:] - down[..., :-2]) / 4, dxx])


def _local_maximum(planes: Float32s, window: int) -> Float32s:
    """The maximum over the square window around each pixel; zeros beyond the border."""
    for _ in range(2):  # along x, then along y
        n, span = planes.shape[-1], 1
        planes = np.pad(planes, ((0, 0), (0, 0), (window // 2, window // 2)))
        while 2 * span <= window:  # planes[..., i] is the maximum of span pixels from i on
            planes = np.maximum(planes[..., :-span], planes[..., span:])
            span *= 2
        planes = np.maximum(planes[..., :n], planes[..., window - span : window - span + n]).swapaxes(1, 2)
    return planes


def _lowest(values: Float32s | Float64s, percent: float) -> Bools:
    """Which values are among the lowest `percent`, at least one; all ties with the last one are included."""
    k = int(np.ceil(percent / 100 * values.size)) - 1
    return np.asarray(values <= np.partition(values, k)[k])


def _check_window(window: int, low: int) -> None:
    if window < low or window % 2 == 0:
        raise ParameterError(f"window must be an odd number of pixels, {low} or more, not {window}")
