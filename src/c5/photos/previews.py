"""Photographs as a page on a screen wants them: linear pixels that it develops itself, and thumbnails that are kept.

Both are upright. A thumbnail is kept as the camera saw it, so that it is made once and balanced as often as needed.
"""

from __future__ import annotations

import io
import os
import sqlite3
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools, Float32s, Float64s, gains
from c5.fingerprints import fingerprint, probe
from c5.image import LinearImage, StoredImage
from c5.photos.photo import Photo, Thumbnail
from c5.photos.picture import PICTURE_WIDTH, Pixels, encode_picture, render, turn

SIDE = PICTURE_WIDTH
"""Pixels of the longer side of a thumbnail."""
CLIPPED, COUNTED = 1, 2
"""Flags of a pixel: it is clipped; it counts for the exposure."""
QUALITY = 85
MOST_KEPT = 20_000
"""Thumbnails, about 20 KB each."""
KINDS = "SELECT kind FROM thumbnail WHERE content = ?"


@dataclass(frozen=True, eq=False)
class Preview:
    """The linear pixels of a photograph, upright."""

    rgb: NDArray[np.uint16]  # (height, width, 3), 65535 is white
    flags: NDArray[np.uint8]  # (height, width)
    size: tuple[int, int] = (0, 0)
    """Height and width of the whole picture, in whose pixels rectangles are given."""

    @classmethod
    def of(cls, image: StoredImage, orientation: int, size: tuple[int, int] = (0, 0)) -> Preview:
        flags = image.clipped * np.uint8(CLIPPED) + image.mask * np.uint8(COUNTED)
        upright = size if orientation < 5 else size[::-1]
        return cls(turn(image.rgb, orientation), turn(flags.astype(np.uint8), orientation), upright)

    def encode(self) -> bytes:
        """Height and width, those of the whole picture, red, green and blue of all pixels as uint16, then their flags.

        Numbers are little-endian.
        """
        sizes = np.array([*self.rgb.shape[:2], *self.size], "<u4").tobytes()
        return sizes + self.rgb.astype("<u2").tobytes() + self.flags.tobytes()

    def develop(self, illuminant: Float64s | None, matrix: Float64s | None) -> Pixels:
        """The picture as `c5.photos.picture.render` makes it."""
        return render(self.rgb, self.counted, illuminant, matrix, self.clipped)

    @property
    def linear(self) -> Float32s:
        return self.rgb * np.float32(1 / 65535)

    @property
    def clipped(self) -> Bools:
        return (self.flags & CLIPPED) > 0

    @property
    def counted(self) -> Bools:
        return (self.flags & COUNTED) > 0


def read_preview(photo: Photo) -> Preview:
    """The pixels of a photograph, as many as a picture by `c5 balance --preview` has."""
    image, photograph = photo.reading.read_preview(photo.path)
    return Preview.of(image, photograph.orientation, photograph.size)


def turn_thumbnail(thumbnail: Thumbnail, orientation: int) -> Preview:
    """A thumbnail, turned upright."""
    rgb, mask, clipped = thumbnail
    return Preview.of(StoredImage.of(LinearImage(rgb.astype(np.float32), mask, clipped)), orientation)


def pack_thumbnail(thumbnail: Preview) -> bytes:
    """A thumbnail in about 20 KB: the square roots of its linear values as a JPEG, then its flags."""
    from PIL import Image

    buffer = io.BytesIO()
    roots = np.rint(np.sqrt(thumbnail.linear) * 255).astype(np.uint8)
    Image.fromarray(roots).save(buffer, "JPEG", quality=95, subsampling=0)
    flags = zlib.compress(thumbnail.flags.tobytes())
    return len(flags).to_bytes(4, "little") + flags + buffer.getvalue()


def unpack_thumbnail(data: bytes) -> Preview:
    """The inverse of `pack_thumbnail`, except for what JPEG loses."""
    from PIL import Image

    size = int.from_bytes(data[:4], "little")
    with Image.open(io.BytesIO(data[4 + size :]), formats=["JPEG"]) as picture:
        roots = np.asarray(picture.convert("RGB"), dtype=np.uint32)
    rgb = (roots**2 * 65535 // (255 * 255)).astype(np.uint16)
    flags = np.frombuffer(zlib.decompress(data[4 : 4 + size]), np.uint8).reshape(rgb.shape[:2])
    return Preview(rgb, flags)


def encode_thumbnail(pixels: Pixels) -> bytes:
    """A small JPEG of a developed picture."""
    return encode_picture(pixels, ".jpg", quality=QUALITY)


def rebalance(picture: Pixels, photo: Photo, illuminant: Float64s) -> Pixels:
    """A picture in the camera's own balance, roughly as it looks in another; unchanged if the matrices are not known.

    It is good enough for a thumbnail until the photograph itself is read.
    """
    if photo.as_shot is None:
        return picture
    before, after = photo.srgb_matrix(photo.as_shot), photo.srgb_matrix(illuminant)
    if before is None or after is None:
        return picture
    change = after * (gains(illuminant) / gains(photo.as_shot)) @ np.linalg.inv(before)
    linear = _LINEAR[picture] @ change.T.astype(np.float32)
    return np.asarray(np.rint(np.clip(linear, 0, 1) ** (1 / 2.2) * 255), dtype=np.uint8)


_LINEAR: Float32s = ((np.arange(256) / 255) ** 2.2).astype(np.float32)


class Thumbnails:
    """Thumbnails on disk, keyed by the content of their files. What cannot be kept is made again.

    So are all of them if this version of the package makes them in another way.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = self._open(path)

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return _connect(str(path))
        except sqlite3.DatabaseError:  # damaged: it holds nothing that cannot be made again
            with suppress(OSError):
                os.unlink(path)
        except OSError:
            pass
        try:
            return _connect(str(path))
        except (sqlite3.Error, OSError):
            return _connect(":memory:")

    def find(self, content: bytes, kind: str) -> bytes | None:
        """A thumbnail of a kind; None if there is none."""
        with self._lock, suppress(sqlite3.Error):
            query = "SELECT data FROM thumbnail WHERE content = ? AND kind = ?"
            row = self._connection.execute(query, (content, kind)).fetchone()
            if row is not None:
                return bytes(row[0])
        return None

    def kinds(self, content: bytes) -> set[str]:
        """The kinds of thumbnails that are kept of a file."""
        with self._lock, suppress(sqlite3.Error):
            return {kind for (kind,) in self._connection.execute(KINDS, (content,))}
        return set()

    def keep(self, content: bytes, kind: str, data: bytes) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._connection.execute("INSERT OR REPLACE INTO thumbnail VALUES (?, ?, ?)", (content, kind, data))

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            oldest = "SELECT rowid FROM thumbnail ORDER BY rowid DESC LIMIT -1 OFFSET ?"
            self._connection.execute(f"DELETE FROM thumbnail WHERE rowid IN ({oldest})", (MOST_KEPT,))
            self._connection.close()


def _making_key() -> str:
    """Changes when thumbnails are made in another way, so that those that were kept are made again."""
    image = probe(PROBE_SEED, repeats=2 * SIDE // 24)  # larger than a thumbnail
    packed = pack_thumbnail(turn_thumbnail(Thumbnail.of(image), 6))
    picture = encode_thumbnail(np.rint(image.rgb[:SIDE] * 255).astype(np.uint8))
    return fingerprint(np.frombuffer(packed + picture, np.uint8) / 255)


PROBE_SEED = 7


def _connect(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(place, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    made = int(_making_key(), 16) - 2**31
    if connection.execute("PRAGMA user_version").fetchone() != (made,):
        connection.execute("DROP TABLE IF EXISTS thumbnail")
        connection.execute(f"PRAGMA user_version = {made}")
    table = "content BLOB, kind TEXT, data BLOB NOT NULL, PRIMARY KEY (content, kind)"
    connection.execute(f"CREATE TABLE IF NOT EXISTS thumbnail ({table})")
    return connection
