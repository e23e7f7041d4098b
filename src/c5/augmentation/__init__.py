"""More training images from few: photographs mapped to other cameras and other lights. See docs/augmentation.md."""

from c5.augmentation.draw import Augmentation, Settings, augment, draw
from c5.augmentation.lights import CameraLights, Near
from c5.augmentation.mapping import MappedImage, map_image

__all__ = [
    "Augmentation",
    "CameraLights",
    "MappedImage",
    "Near",
    "Settings",
    "augment",
    "draw",
    "map_image",
]
