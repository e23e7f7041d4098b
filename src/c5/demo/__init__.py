"""Demo photographs, rendered from spectra: virtual cameras, real lights, and scenes made of noise and shapes.

rng = np.random.default_rng(1)
roll = render_roll(VirtualCamera.random(rng), 8, rng)
"""

from c5.demo.camera import VirtualCamera
from c5.demo.lights import INDOORS, LIGHTS, OUTDOORS, Light
from c5.demo.photo import Photo, render_photo, render_roll
from c5.demo.scenes import SCENE_LIGHTS, SCENES

__all__ = [
    "INDOORS",
    "LIGHTS",
    "OUTDOORS",
    "SCENES",
    "SCENE_LIGHTS",
    "Light",
    "Photo",
    "VirtualCamera",
    "render_photo",
    "render_roll",
]
