"""darktable's sidecars, NAME.EXT.xmp beside a raw file: a history of what was done to a photograph.

Two modules deal with the light there. "White balance" (temperature) multiplies the channels of the raw file. "Color
calibration" (channelmixerrgb), in what darktable calls the modern workflow, adapts the result from the light that the
camera noted, and takes for granted that white balance was left at the camera's daylight. A balance that is found from
the raw pixels belongs into the first, and the second must then not adapt again.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, gains
from c5.errors import ParameterError, ReadError
from c5.photos.sidecars.xmp import DESCRIPTION, RDF, REMEDY, Element, Name, Packet

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

DARKTABLE = "http://darktable.sf.net/"

LARGEST_MULTIPLIER = 8.0
"""Where the sliders end."""

# Fields of the parameters of channelmixerrgb, the same in its versions 1 to 3.
_ILLUMINANT, _ADAPTATION = 120, 132
_SAME_AS_PIPELINE, _NO_ADAPTATION = 0, 4
_MIXER_VERSIONS = {"1", "2", "3"}

# A channelmixerrgb that does nothing: each channel from itself, and the light is the pipeline's own (D50).
_IDLE_MIXER = struct.pack(
    "<24f6i4i4f2i",
    *(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0),  # red, green, blue
    *(0,) * 12,  # saturation, lightness, gray
    *(0, 0, 0, 0, 0, 1),  # which of them are normalised
    *(_SAME_AS_PIPELINE, 3, 1, 1),  # illuminant, F source, LED source, CAT16
    *(0.34567, 0.35850, 5003, 1),  # x, y, temperature, gamut compression
    *(1, 2),  # clip, version of the saturation
)

Entry = dict[str, str]
"""What a step of the history says: operation, enabled, params and so on."""


def path_beside(photo: Path) -> Path:
    """Where darktable looks for the sidecar of a raw file."""
    return photo.with_name(f"{photo.name}.xmp")


def encode(balance: Balance, existing: bytes | None) -> bytes:
    """A sidecar with this balance."""
    return set_multipliers(existing, gains(balance.illuminant))


def note(_: Balance) -> str:
    """Empty: multipliers hold any balance."""
    return ""


def set_multipliers(existing: bytes | None, multipliers: ArrayLike) -> bytes:
    """A sidecar that multiplies red, green and blue by `multipliers` in white balance and adapts nowhere else.

    A new sidecar leaves the rest to the user's own workflow: only color calibration is put in, switched off, because
    darktable would add it otherwise. In an existing one, white balance is one more step of the history, and a color
    calibration that adapts gets a step in which it mixes channels as before and no longer adapts. Steps that had been
    undone go, as they do with any new step.
    """
    packet = Packet(existing)
    steps, places = _read_history(packet)
    end = packet.get(_name("history_end"))
    done = steps[: int(end)] if end is not None and _is_count(end) else steps  # what is behind has been undone
    added = _without_adaptation(done, is_begun=packet.get(_name("auto_presets_applied")) == "1" and bool(done))
    balance = {
        "operation": "temperature",
        "enabled": "1",
        "modversion": "3",  # as 3.4 to 4.6 write it, and later ones convert it
        "params": struct.pack("<4f", *_limit(multipliers), np.nan).hex(),
        "multi_name": "",
        "multi_priority": "0",
    }
    kept = done
    if not added and done and done[-1].get("operation") == "temperature":
        kept = done[:-1]  # as darktable does when a step follows one of its own module
        if existing is not None and len(done) == len(steps) and balance.items() <= done[-1].items():
            return existing
    added.append(balance)
    if not done:
        _begin(packet)
    for place, step in places.items():
        if not any(step is other for other in kept):
            packet.cut(place)
    _append_steps(packet, added, int(kept[-1]["num"]) + 1 if kept else 0)
    packet.set(_name("history_end"), str(len(kept) + len(added)), "darktable")
    for digest in ("history_basic_hash", "history_auto_hash", "history_current_hash"):
        packet.remove(_name(digest))  # of a history that is no more
    return packet.encode()


def _limit(multipliers: ArrayLike) -> Float64s:
    """Multipliers with that of green at 1, as far as the sliders allow."""
    array = np.asarray(multipliers, dtype=np.float64)
    if array.shape != (3,) or not (np.isfinite(array).all() and (array > 0).all()):
        raise ParameterError("multipliers are three finite numbers above zero, for red, green and blue")
    array = array / array[1]
    return np.asarray(array * min(1, LARGEST_MULTIPLIER / array.max()))


def _read_history(packet: Packet) -> tuple[list[Entry], dict[Element, Entry]]:
    """The steps in their order, and where each stands."""
    places = {
        item: _read_entry(item)
        for history in _histories(packet)
        for items in history.children
        for item in items.find(Name(RDF, "li"))
    }
    if places and not _is_recent(packet):
        raise ReadError("the sidecar is of a darktable before 3.2: open the photograph once in a newer one")
    try:
        steps = sorted(places.values(), key=lambda step: int(step["num"]))
    except (KeyError, ValueError):
        raise ReadError(f"the sidecar's history is damaged: {REMEDY}") from None
    return steps, places


def _is_recent(packet: Packet) -> bool:
    """Whether darktable 3.2 or a later one wrote the sidecar; before, steps carried their place in the pipeline."""
    version = packet.get(_name("xmp_version")) or ""
    return _is_count(version) and int(version) >= 4


def _histories(packet: Packet) -> list[Element]:
    return [history for description in packet.descriptions for history in description.find(_name("history"))]


def _read_entry(item: Element) -> Entry:
    """The fields of a step, as attributes or as elements, in the item itself or in a description within."""
    entry: Entry = {}
    for element in (item, *item.find(DESCRIPTION)):
        entry |= {name.local: it.value for name, it in element.attributes.items() if name.namespace == DARKTABLE}
        entry |= {
            child.name.local: child.text.strip() for child in element.children if child.name.namespace == DARKTABLE
        }
    return entry


def _without_adaptation(done: list[Entry], *, is_begun: bool) -> list[Entry]:
    """The steps after which no color calibration adapts.

    `is_begun` says that darktable has seen the photograph and adds no modules of its own.
    """
    mixers = {step.get("multi_priority", "0"): step for step in done if step.get("operation") == "channelmixerrgb"}
    if not mixers and not is_begun:
        idle = {"operation": "channelmixerrgb", "enabled": "0", "modversion": "3", "params": _IDLE_MIXER.hex()}
        return [{**idle, "multi_name": "", "multi_priority": "0"}]
    stilled = (_still(mixer) for mixer in mixers.values() if mixer.get("enabled") == "1")
    return [step for step in stilled if step is not None]


def _still(mixer: Entry) -> Entry | None:
    """The next step of a color calibration, in which it no longer adapts; None if it does not."""
    params = _decode(mixer.get("params", ""))
    if params is None or len(params) < _ADAPTATION + 4 or mixer.get("modversion") not in _MIXER_VERSIONS:
        return {**mixer, "enabled": "0"}  # of a version yet to come: all that can be done is to switch it off
    (illuminant,), (adaptation,) = (struct.unpack_from("<i", params, place) for place in (_ILLUMINANT, _ADAPTATION))
    if illuminant == _SAME_AS_PIPELINE or adaptation == _NO_ADAPTATION:
        return None
    still = params[:_ILLUMINANT] + struct.pack("<i", _SAME_AS_PIPELINE) + params[_ILLUMINANT + 4 :]
    return {**mixer, "params": still.hex()}


def _decode(params: str) -> bytes | None:
    """Parameters of a module: hexadecimal, or "gz", two digits and zlib data in base 64."""
    try:
        if params.startswith("gz"):
            return zlib.decompressobj().decompress(base64.b64decode(params[4:], validate=True), 4096)
        return bytes.fromhex(params)
    except (ValueError, binascii.Error, zlib.error):
        return None


def _begin(packet: Packet) -> None:
    """Say which kind of sidecar this is, and that darktable's own modules have yet to be added."""
    if not _is_recent(packet):
        packet.set(_name("xmp_version"), "5", "darktable")
    packet.set(_name("raw_params"), packet.get(_name("raw_params")) or "0", "darktable")
    packet.set(_name("auto_presets_applied"), "0", "darktable")
    packet.set(_name("iop_order_version"), packet.get(_name("iop_order_version")) or "2", "darktable")


def _append_steps(packet: Packet, added: list[Entry], first: int) -> None:
    histories = _histories(packet)
    lists = [items for history in histories for items in history.children]
    place = next(iter([*lists, *histories]), packet.home(DARKTABLE))
    name, rdf = packet.prefix(place, DARKTABLE, "darktable"), packet.prefix(place, RDF, "rdf")
    text = ""
    for number, step in enumerate(added, first):
        fields = {**step, "num": str(number)}
        text += f"\n     <{rdf}:li" + "".join(f"\n      {name}:{key}={quoteattr(fields[key])}" for key in fields) + "/>"
    if not lists:
        text = f"\n    <{rdf}:Seq>{text}\n    </{rdf}:Seq>"
    if not histories:
        text = f"\n   <{name}:history>{text}\n   </{name}:history>"
    packet.append(place, text + "\n  ")


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _name(local: str) -> Name:
    return Name(DARKTABLE, local)
