"""The catalogue of a photographer's files, from which camera rolls and profiles come."""

from c5.photos.catalog.adding import Added
from c5.photos.catalog.catalog import CameraStatus, Catalog, Entry
from c5.photos.catalog.database import default_path
from c5.photos.catalog.rolls import Order

__all__ = ["Added", "CameraStatus", "Catalog", "Entry", "Order", "default_path"]
