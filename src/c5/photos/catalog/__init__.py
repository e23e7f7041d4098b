"""The catalog of a photographer's files, from which camera rolls and profiles come."""

from c5.photos.catalog.adding import Added
from c5.photos.catalog.catalog import CameraStatus, Catalog
from c5.photos.catalog.database import default_path

__all__ = ["Added", "CameraStatus", "Catalog", "default_path"]
