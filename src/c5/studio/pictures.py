"""Pictures of a shoot for its page: thumbnails, which are kept, and linear pixels that the page develops itself."""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from c5.colorimetry.adaptation import DAYLIGHT, locate_light
from c5.errors import C5Error, ParameterError
from c5.io.versions import digest_file
from c5.photos.balancing import Settings
from c5.photos.embedded import read_embedded
from c5.photos.explain import draw_explanation
from c5.photos.files import Failure
from c5.photos.photo import Thumbnail
from c5.photos.picture import Pixels, encode_picture
from c5.photos.plane import tabulate_plane
from c5.photos.previews import (
    SIDE,
    Thumbnails,
    encode_thumbnail,
    pack_thumbnail,
    read_preview,
    rebalance,
    turn_thumbnail,
    unpack_thumbnail,
)
from c5.studio.shoot import EMBEDDED, LINEAR, Entry, Shoot

KEPT_PREVIEWS = 5
"""Of 17 MB each."""


class Pictures:
    """The pictures of an open shoot, each found or made when it is asked for."""

    def __init__(self, shoot: Shoot, open_settings: Callable[[ExitStack], Settings], cache: Path) -> None:
        self._shoot, self._open_settings = shoot, open_settings
        self._thumbnails = Thumbnails(cache)
        self._lock = threading.Lock()
        self._wanted: OrderedDict[str, None] = OrderedDict()
        self._planes: dict[str, bytes] = {}
        self.preview = lru_cache(KEPT_PREVIEWS)(self._make_preview)
        """The linear pixels of a photograph by its id, as `Preview.encode` makes them."""

    def close(self) -> None:
        self._thumbnails.close()

    def thumbnail(self, id: str, *, before: bool = False) -> bytes | None:
        """A JPEG of a photograph as it will be, or as shot; None if nothing can be shown yet."""
        entry = self._shoot.find(id)
        final = self._shoot.final(entry)
        kept = self._thumbnails.find(entry.content, LINEAR) if LINEAR in entry.kinds else None
        if kept is not None:
            small = unpack_thumbnail(kept)
            if final is None:  # gray on average, until its light is known
                return encode_thumbnail(small.develop(small.linear.mean(axis=(0, 1)) + 1e-4, None))
            light = final.photo.as_shot if before else final.illuminant
            matrix = None if light is None else final.photo.srgb_matrix(light)
            return encode_thumbnail(small.develop(light, matrix))
        with self._lock:
            self._wanted[id] = None
            self._wanted.move_to_end(id)
        kept = self._thumbnails.find(entry.content, EMBEDDED) if EMBEDDED in entry.kinds else None
        if kept is None or before or final is None:
            return kept
        return encode_thumbnail(rebalance(_decode(kept), final.photo, final.illuminant))

    def _make_preview(self, id: str) -> bytes:
        return read_preview(self._shoot.photo(self._shoot.find(id))).encode()

    def develop(self, id: str) -> dict[str, Any]:
        """What a page needs to develop the pixels: lights and matrices, and where the light is in the plane."""
        entry = self._shoot.find(id)
        before, final = self._shoot.uncorrected(entry), self._shoot.final(entry)
        if before is None or final is None:
            raise ParameterError("its light is still being found")
        photo, light = final.photo, before.illuminant
        place = None
        if photo.matrices is not None:
            with suppress(ParameterError):  # the matrices fit no such light
                place = locate_light(light, photo.matrices)._asdict()
        lights = {"illuminant": final.illuminant, "light": light, "as_shot": photo.as_shot}
        told: dict[str, Any] = {name: None if rgb is None else rgb.tolist() for name, rgb in lights.items()}
        for name, rgb in lights.items():
            matrix = None if rgb is None else photo.srgb_matrix(rgb)
            told[f"{name}_matrix"] = None if matrix is None else matrix.ravel().tolist()
        return told | {"place": place, "camera": photo.camera, "daylight": DAYLIGHT._asdict()}

    def plane(self, id: str) -> bytes:
        """The table of the photograph's camera, with which a page follows its sliders."""
        photo = self._shoot.photo(self._shoot.find(id))
        key = photo.camera or id
        if key not in self._planes:
            self._planes[key] = tabulate_plane(photo.need_matrices()).encode()
        return self._planes[key]

    def explain(self, id: str) -> bytes:
        """A picture of what the estimate is based on, with the heat map."""
        entry = self._shoot.find(id)
        photo = self._shoot.photo(entry)
        assert entry.own is not None
        with ExitStack() as stack:
            model = self._open_settings(stack).model
            image = photo.reading.read(photo.path).image
            return encode_picture(draw_explanation(model, image, entry.own.roll, photo.matrices), "why.png")

    # Thumbnails, made in the background

    def missing(self) -> list[Entry]:
        """The photographs whose light is known, but whose thumbnail is not developed yet."""
        return [entry for entry in self._shoot.entries.values() if entry.own is not None and LINEAR not in entry.kinds]

    def wanted_first(self, entries: list[Entry]) -> Iterator[Entry]:
        """The same photographs; those that were asked for last come first."""
        waiting = {entry.id: entry for entry in entries}
        while waiting:
            with self._lock:
                wanted = next((id for id in reversed(self._wanted) if id in waiting), None)
            yield waiting.pop(wanted or next(iter(waiting)))

    def embed(self, entry: Entry) -> None:
        """Find the thumbnails that are kept of a photograph; where there are none, keep what its camera embedded."""
        try:
            entry.content = digest_file(os.fsencode(entry.path))[1]
            entry.kinds = self._thumbnails.kinds(entry.content)
            if not entry.kinds:
                picture = read_embedded(entry.path, SIDE)
                if picture is not None:
                    self._thumbnails.keep(entry.content, EMBEDDED, encode_thumbnail(picture))
                    entry.kinds = {EMBEDDED}
        except (C5Error, OSError) as error:
            entry.failure = Failure.of(Path(entry.name), error).message

    def draw(self, entry: Entry) -> None:
        """Develop the thumbnail of a photograph, and keep it."""
        try:
            photo = self._shoot.photo(entry)
            image = photo.reading.read(photo.path).image
            self.keep(entry, Thumbnail.of(image), photo.orientation)
        except C5Error as error:
            entry.failure = Failure.of(Path(entry.name), error).message

    def keep(self, entry: Entry, thumbnail: Thumbnail, orientation: int) -> None:
        self._thumbnails.keep(entry.content, LINEAR, pack_thumbnail(turn_thumbnail(thumbnail, orientation)))
        entry.kinds = {*entry.kinds, LINEAR}


def _decode(jpeg: bytes) -> Pixels:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as picture:
        return np.asarray(picture.convert("RGB"))
