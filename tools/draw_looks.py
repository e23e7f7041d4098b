"""Write docs/images/looks.jpg: rendered photographs in candle light, low sun and daylight with several looks.

A developer runs this once: `python tools/draw_looks.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from c5.colorimetry.adaptation import adapt_to_srgb, locate_light
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.spectra import black_body
from c5.demo import LIGHTS, VirtualCamera, render_photo
from c5.demo.lights import Light
from c5.demo.photo import Photo
from c5.photos.picture import Frame, Pixels, make_sheet, render, write_picture
from c5.photos.taste import Look

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "looks.jpg"
LOOKS = {
    "strength 1: neutral": Look(),
    "strength 0.8": Look(strength=0.8),
    "strength 0.5": Look(strength=0.5),
    "keep warmth": Look(keep_warmth=True),
}


def main() -> None:
    camera = VirtualCamera.random(np.random.default_rng(15))
    matrices = CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))
    lamp = LIGHTS["tungsten"](np.random.default_rng(4))
    candle = replace(lamp, name="candle light, 2000 K", spectrum=black_body(2000), fill=black_body(1950))
    low_sun, daylight = LIGHTS["low sun"](np.random.default_rng(2)), LIGHTS["sun"](np.random.default_rng(1))
    scenes: list[tuple[str, Light, int]] = [("portrait", candle, 4), ("beach", low_sun, 4), ("street", daylight, 5)]
    frames = []
    for scene, light, seed in scenes:
        photo = render_photo(camera, scene, light, np.random.default_rng(seed), (480, 720))
        pictures = [develop(photo, matrices, look) for look in LOOKS.values()]
        frames.append(Frame(pictures, f"{scene}, {light.name}"))
    print(write_picture(PICTURE, make_sheet("The look you like", list(LOOKS), frames, columns=1, width=300)))


def develop(photo: Photo, matrices: CameraMatrices, look: Look) -> Pixels:
    white = look.apply(photo.illuminant, matrices)
    matrix = adapt_to_srgb(matrices.matrix(1e6 / locate_light(white, matrices).mired), white)
    return render(photo.image.rgb, photo.image.mask, white, matrix, photo.image.clipped)


if __name__ == "__main__":
    main()
