"""Write docs/images/augmentation-pictures.jpg: rendered photographs, mapped to another camera and as seen by it.

A developer runs this once: `python tools/draw_augmentation.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from c5.augmentation import map_image
from c5.color import angular_error, white_balance
from c5.colorimetry.matrices import CameraMatrices
from c5.demo import LIGHTS, SCENE_LIGHTS, VirtualCamera, render_photo
from c5.demo.photo import Photo
from c5.image import LinearImage
from c5.photos.picture import Frame, develop, make_sheet, write_picture

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "augmentation-pictures.jpg"
HEADINGS = ["photograph of one camera", "mapped to another", "what the other really sees"]


def main() -> None:
    frames, misses = [], []
    for seed, (scene, lights) in enumerate(SCENE_LIGHTS.items()):
        cameras = [VirtualCamera.random(np.random.default_rng(100 + 2 * seed + i)) for i in range(2)]
        light = LIGHTS[lights[seed % len(lights)]](np.random.default_rng(seed))
        one, other = (render_photo(camera, scene, light, np.random.default_rng(seed)) for camera in cameras)
        ccms = [find_ccm(camera, photo) for camera, photo in zip(cameras, (one, other), strict=True)]
        matrix = np.linalg.solve(ccms[1], ccms[0])
        mapped = map_image(one.image, matrix, one.illuminant, other.illuminant)
        relit = map_image(one.image, np.eye(3), one.illuminant, other.illuminant)
        misses.append((measure_miss(mapped, other), measure_miss(relit, other)))
        caption = f"{scene}, {light.name}: {cameras[0].name} to {cameras[1].name}"
        caption += f"; colors {misses[-1][0]:.1f}° off, {misses[-1][1]:.1f}° without the matrices"
        frames.append(Frame([develop(image) for image in (one.image, mapped, other.image)], caption))
    title = "One camera's photograph mapped to another camera"
    print(write_picture(PICTURE, make_sheet(title, HEADINGS, frames[:6], width=216)))
    mean = np.mean(misses, axis=0)
    print(
        f"colors off by {mean[0]:.2f} degrees on average over {len(misses)} scenes, {mean[1]:.2f} without the matrices"
    )


def find_ccm(camera: VirtualCamera, photo: Photo) -> np.ndarray:
    matrices = CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))
    return matrices.ccm(float(matrices.temperature(photo.illuminant)))


def measure_miss(image: LinearImage, truth: Photo) -> float:
    """The mean angle between the white-balanced colors of pixels that count in both."""
    counts = image.counts & truth.image.counts
    balanced = (white_balance(each.rgb, truth.illuminant)[counts] for each in (image, truth.image))
    return float(angular_error(*balanced).mean())


if __name__ == "__main__":
    main()
