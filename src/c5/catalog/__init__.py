"""The catalogue of a photographer's files, from which camera rolls and profiles come."""

from c5.catalog.adding import Added
from c5.catalog.catalog import CameraStatus, Catalog, Entry
from c5.catalog.database import default_path
from c5.catalog.rolls import MOST_VIVID, Order

__all__ = ["MOST_VIVID", "Added", "CameraStatus", "Catalog", "Entry", "Order", "default_path"]
