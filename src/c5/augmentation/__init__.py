"""More training images from few: photographs mapped to other cameras and other lights. See docs/augmentation.md."""

from c5.augmentation.draw import Augmentation, augment
from c5.augmentation.mapping import MappedImage, map_image

__all__ = [
    "Augmentation",
    "MappedImage",
    "augment",
    "map_image",
]
