"""Marks on what c5 wrote into a sidecar, so that it can be told from a person's work, replaced and undone.

A mark is a line of JSON in a place that the program leaves alone. It says which balance c5 wrote, what was there
before, and how to make the former sidecar from the present one. That restores it byte for byte as long as nobody has
written to the sidecar. If somebody has, but the balance is still ours, only the balance is removed. If the balance has
changed, a person has changed it, and c5 leaves it alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from c5.color import Float64s
from c5.errors import ReadError, WriteError
from c5.io.shapes import OrNull, parse_json

if TYPE_CHECKING:
    from c5.photos.photo import Photo

WINDOW = 32768
"""As far back as zlib sees."""

MAX_FORMER = 64 << 20
"""No former sidecar is larger, whatever a mark says."""


class Form(Protocol):
    """A format of sidecars: a module of this package."""

    def read_balance(self, sidecar: bytes) -> dict[str, str]:
        """What distinguishes one balance from another."""

    def is_custom(self, sidecar: bytes, as_shot: Float64s | None) -> bool:
        """Whether the balance is neither missing nor the camera's own, whose light is `as_shot`."""

    def read_illuminant(self, sidecar: bytes, photo: Photo) -> Float64s | None:
        """What a balance with numbers takes out of a photograph, as exactly as the format holds it; else None."""

    def describe_former(self, former: bytes, made: bytes) -> dict[str, Any]:
        """What `restore` needs to know of the sidecar before the balance was written."""

    def restore(self, sidecar: bytes, former: dict[str, Any]) -> bytes:
        """A sidecar without c5's balance, where somebody has changed the rest since."""

    def put_mark(self, sidecar: bytes, text: str) -> bytes:
        """The sidecar with a mark."""

    def cut_mark(self, sidecar: bytes) -> tuple[bytes, str | None]:
        """The sidecar without its mark, and the mark."""


class CustomBalanceError(WriteError):
    """The sidecar holds a balance that a person set."""


MARK = {"wrote": {str: object}, "former": OrNull({str: object}), "rest": str, "patch": str, "chosen?": bool}


@dataclass(frozen=True)
class Mark:
    wrote: dict[str, str]
    """The balance as c5 left it."""
    former: dict[str, Any] | None
    """What it replaced; None if c5 made all of the sidecar."""
    rest: str
    """A digest of the sidecar without the mark, as c5 left it."""
    patch: str
    """Turns that one into the former sidecar."""
    chosen: bool = False
    """Whether a person chose the balance, and c5 only wrote it down."""


def merge(
    form: Form,
    make: Callable[[bytes | None], bytes],
    existing: bytes | None,
    beside: bytes | None = None,
    *,
    as_shot: Float64s | None = None,
    replace_custom: bool = False,
    chosen: bool = False,
) -> bytes:
    """A marked sidecar: the existing one with the balance that `make` writes into it.

    A sidecar that c5 creates takes over the content of the one `beside` the photograph. A balance that a person set
    is a `CustomBalanceError` unless it may be replaced. The mark says whether the new balance was `chosen` by a person.
    """
    mark = None if existing is None else _find(form, existing)
    base, is_new = existing, existing is None
    if existing is not None and mark is not None:
        if form.read_balance(existing) == mark.wrote:
            base = take_back(form, existing)
            is_new = base is None
        else:
            base, _ = form.cut_mark(existing)
    if is_new and beside is not None:
        base = take_back(form, beside)
    if base is not None and not replace_custom and form.is_custom(base, as_shot):
        raise CustomBalanceError("its balance was set by hand")
    made = make(base)
    wrote = form.read_balance(made)
    is_same = mark is not None and mark.wrote == wrote and mark.chosen is chosen
    if existing is not None and is_same and wrote == form.read_balance(existing) and not is_new:
        return existing
    plain, _ = form.cut_mark(form.put_mark(made, ""))
    former = None if is_new or base is None else form.describe_former(base, made)
    patch = "" if former is None or base is None else _make_patch(plain, base)
    said = asdict(Mark(wrote, former, _digest(plain), patch, chosen))
    if not chosen:
        del said["chosen"]  # as in older marks
    return form.put_mark(made, json.dumps(said, separators=(",", ":")))


def take_back(form: Form, sidecar: bytes) -> bytes | None:
    """A sidecar without what c5 wrote into it; None if that is all of it.

    One without a mark, or with a balance that somebody has changed since, stays as it is.
    """
    mark = _find(form, sidecar)
    if mark is None:
        return sidecar
    plain, _ = form.cut_mark(sidecar)
    if _digest(plain) == mark.rest:
        if mark.former is None:
            return None
        former = _apply_patch(plain, mark.patch)
        if former is not None:
            return former
    if form.read_balance(plain) != mark.wrote:
        return sidecar
    try:
        return form.restore(plain, mark.former or {})
    except (ReadError, UnicodeEncodeError) as error:  # what the mark says of the former balance is no balance
        raise ReadError(
            "what c5 noted in the sidecar is damaged: remove it, or write it again in its program"
        ) from error


def is_marked(form: Form, sidecar: bytes) -> bool:
    """Whether c5 wrote a balance into a sidecar, whatever has happened to it since."""
    return _find(form, sidecar) is not None


def holds_own(form: Form, sidecar: bytes) -> bool:
    """Whether the balance of a sidecar is c5's own: no person has chosen it, or changed it since."""
    mark = _find(form, sidecar)
    return mark is not None and mark.chosen is not True and form.read_balance(sidecar) == mark.wrote


def _find(form: Form, sidecar: bytes) -> Mark | None:
    text = form.cut_mark(sidecar)[1]
    try:
        known = parse_json(text or "", MARK)
    except ReadError:  # none, or damaged and as good as none
        return None
    return Mark(known["wrote"], known["former"], known["rest"], known["patch"], known.get("chosen", False))


def _make_patch(made: bytes, former: bytes) -> str:
    """What both share at each end, in bytes, and the former's middle, compressed with the other as the dictionary."""
    start = len(os.path.commonprefix([made, former]))  # noqa: RUF071
    end = len(os.path.commonprefix([made[start:][::-1], former[start:][::-1]]))  # noqa: RUF071
    packer = zlib.compressobj(9, zdict=_dictionary(made, start, end))
    middle = packer.compress(former[start : len(former) - end]) + packer.flush()
    return f"{start} {end} {base64.b64encode(middle).decode()}"


def _apply_patch(made: bytes, patch: str) -> bytes | None:
    try:
        start, end, packed = patch.split(" ")
        low, high = int(start), len(made) - int(end)
        unpacker = zlib.decompressobj(zdict=_dictionary(made, low, int(end)))
        middle = unpacker.decompress(base64.b64decode(packed, validate=True), MAX_FORMER)
    except (ValueError, zlib.error):
        return None
    return made[:low] + middle + made[high:] if 0 <= low <= high <= len(made) else None


def _dictionary(made: bytes, start: int, end: int) -> bytes:
    return made[start : len(made) - end][-WINDOW:] or b"\0"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
