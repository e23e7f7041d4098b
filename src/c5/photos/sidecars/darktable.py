"""darktable's sidecars, NAME.EXT.xmp beside a raw file: a history of what was done to a photograph.

Two modules deal with the light there. "White balance" (temperature) multiplies the channels of the raw file. "Color
calibration" (channelmixerrgb), in what darktable calls the modern workflow, adapts the result from the light that the
camera recorded, and assumes that white balance was left at the camera's daylight. A balance found from the raw pixels
belongs in the first, and the second must then not adapt again.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, as_illuminant, gains
from c5.colorimetry.adaptation import BRADFORD
from c5.colorimetry.spectra import black_body, daylight, xyz
from c5.errors import ParameterError, ReadError
from c5.io.shapes import check_shape
from c5.photos.sidecars.xmp import C5, DESCRIPTION, RDF, REMEDY, Element, Name, Packet, cut_property, put_property

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.photo import Photo

DARKTABLE = "http://darktable.sf.net/"

MARK = Name(C5, "darktable")

LARGEST_MULTIPLIER = 8.0
"""Where the sliders end."""

# Fields of the parameters of channelmixerrgb, the same in its versions 1 to 3.
_ILLUMINANT, _ADAPTATION = 120, 132
_SAME_AS_PIPELINE, _NO_ADAPTATION = 0, 4
_LEFT_TO_DARKTABLE = {2, 6, 10}
"""Daylight, black body, camera: illuminants that darktable itself chooses, from what the camera recorded."""
_MIXER_VERSIONS = {"1", "2", "3"}
_DAYLIGHT, _BLACK_BODY, _CUSTOM = 2, 6, 7
_CHROMATICITY = 136
"""Where x, y and the temperature begin."""

# A channelmixerrgb that does nothing: each channel from itself, and the light is the pipeline's own (D50).
_IDLE_MIXER = struct.pack(
    "<24f6i4i4f2i",
    *(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0),  # red, green, blue
    *(0,) * 12,  # saturation, lightness, gray
    *(0, 0, 0, 0, 0, 1),  # which of them are normalized
    *(_SAME_AS_PIPELINE, 3, 1, 1),  # illuminant, F source, LED source, CAT16
    *(0.34567, 0.35850, 5003, 1),  # x, y, temperature, gamut compression
    *(1, 2),  # clip, version of the saturation
)

_D65, _D50 = np.array([0.95047, 1, 1.08883]), np.array([0.9642, 1, 0.8249])
_D65_TO_D50 = np.linalg.solve(BRADFORD, ((BRADFORD @ _D50) / (BRADFORD @ _D65))[:, None] * BRADFORD)

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
    undone are dropped, as with any new step.
    """
    packet = Packet(existing)
    steps, places = _read_history(packet)
    done = _done(packet, steps)
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
        packet.remove(_name(digest))  # of the former history
    return packet.encode()


def _limit(multipliers: ArrayLike) -> Float64s:
    """Multipliers with green at 1, as far as the sliders allow."""
    array = np.asarray(multipliers, dtype=np.float64)
    if array.shape != (3,) or not (np.isfinite(array).all() and (array > 0).all()):
        raise ParameterError("multipliers are three finite numbers above zero, for red, green and blue")
    array = array / array[1]
    return np.asarray(array * min(1, LARGEST_MULTIPLIER / array.max()))


def _read_history(packet: Packet) -> tuple[list[Entry], dict[Element, Entry]]:
    """The steps in their order, and where each is."""
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


def _done(packet: Packet, steps: list[Entry]) -> list[Entry]:
    """The steps in force; those after them have been undone."""
    end = packet.get(_name("history_end"))
    return steps[: int(end)] if end is not None and _is_count(end) else steps


def _read_done(sidecar: bytes) -> list[Entry]:
    packet = Packet(sidecar)
    return _done(packet, _read_history(packet)[0])


def _is_recent(packet: Packet) -> bool:
    """Whether darktable 3.2 or later wrote the sidecar; before, steps carried their place in the pipeline."""
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
    """The steps to add so that no color calibration adapts.

    `is_begun`: darktable has seen the photograph and adds no modules of its own.
    """
    mixers = _mixers(done)
    if not mixers and not is_begun:
        idle = {"operation": "channelmixerrgb", "enabled": "0", "modversion": "3", "params": _IDLE_MIXER.hex()}
        return [{**idle, "multi_name": "", "multi_priority": "0"}]
    stilled = (_still(mixer) for mixer in mixers.values() if mixer.get("enabled") == "1")
    return [step for step in stilled if step is not None]


def _mixers(done: list[Entry]) -> dict[str, Entry]:
    """The last step of each color calibration."""
    return {step.get("multi_priority", "0"): step for step in done if step.get("operation") == "channelmixerrgb"}


def _adapting(done: list[Entry]) -> list[Entry]:
    """The last steps of those that adapt."""
    return [step for step in _mixers(done).values() if step.get("enabled") == "1" and _still(step) is not None]


def _still(mixer: Entry) -> Entry | None:
    """The next step of a color calibration, in which it no longer adapts; None if it does not adapt now."""
    params = _decode(mixer.get("params", ""))
    if params is None or len(params) < _ADAPTATION + 4 or mixer.get("modversion") not in _MIXER_VERSIONS:
        return {**mixer, "enabled": "0"}  # a future version: all that can be done is to switch it off
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


def read_balance(sidecar: bytes) -> dict[str, str]:
    done = _read_done(sidecar)
    multipliers = [_multipliers(step) for step in done if step.get("operation") == "temperature"]
    return {"temperature": multipliers[-1] if multipliers else "", "adapts": "yes" if _adapting(done) else "no"}


def is_custom(sidecar: bytes, as_shot: Float64s | None) -> bool:
    """Whether one of the two modules has a step that darktable does not put into every history itself."""
    done = _read_done(sidecar)
    balances = [step for step in done if step.get("operation") == "temperature"]
    mixers = [step for step in done if step.get("operation") == "channelmixerrgb"]
    if len(balances) > 1 or len(mixers) > len(_mixers(done)):
        return True  # darktable makes the first
    if adapting := _adapting(done):  # then white balance stays at the camera's daylight
        return any(_illuminant(step) not in _LEFT_TO_DARKTABLE for step in adapting)
    if not balances:
        return False
    found = bytes.fromhex(_multipliers(balances[0]))
    if as_shot is None or len(found) != 12:
        return True
    red_green_blue = np.frombuffer(found, "<f4")
    return not np.allclose(red_green_blue, red_green_blue[1] * gains(as_shot), rtol=0.005)


def read_illuminant(sidecar: bytes, photo: Photo) -> Float64s | None:
    """From the multipliers, and from the light of a color calibration that adapts.

    That light is a chromaticity among the colors that the camera's matrix makes of pixels multiplied for D65, adapted
    to D50 by Bradford's matrix.
    """
    done = _read_done(sidecar)
    held = bytes.fromhex(read_balance(sidecar)["temperature"])
    multipliers = np.frombuffer(held if len(held) == 12 else b"", "<f4").astype(np.float64)
    if not (np.isfinite(multipliers).all() and (multipliers > 0).all()):
        multipliers = np.empty(0)
    adapting = _adapting(done)
    if not adapting:
        return as_illuminant(1 / multipliers) if multipliers.size else None
    light = _read_light(adapting[-1])
    if light is None:
        return None
    matrix = photo.need_matrices().matrix_d65
    seen = matrix @ np.linalg.solve(_D65_TO_D50, light)
    seen = seen / (multipliers * (matrix @ _D65)) if multipliers.size else seen
    return as_illuminant(seen) if seen.min() > 0 else None


def _read_light(mixer: Entry) -> Float64s | None:
    """XYZ of the light that a color calibration adapts from; None if it is not one that a person sets by number."""
    kind, params = _illuminant(mixer), _decode(mixer.get("params", "")) or b""
    if len(params) < _CHROMATICITY + 12:
        return None
    x, y, kelvin = struct.unpack_from("<3f", params, _CHROMATICITY)
    if kind in (_DAYLIGHT, _BLACK_BODY) and 1667 <= kelvin <= 25000:
        return xyz(daylight(kelvin) if kind == _DAYLIGHT and kelvin >= 4000 else black_body(kelvin))
    return np.array([x, y, 1 - x - y]) if kind == _CUSTOM and min(x, y, 1 - x - y) > 0 else None


def describe_former(former: bytes, made: bytes) -> dict[str, Any]:
    """The steps that were added, and the white balance step that was removed."""
    before, after = _read_done(former), _read_done(made)
    gone = [step for step in before if step not in after and step.get("operation") == "temperature"]
    keys = ("operation", "multi_priority", "params")
    return {"added": [[step.get(key) for key in keys] for step in after if step not in before], "replaced": gone[-1:]}


FORMER = {"added?": [(str, str, str)], "replaced?": [{str: str}]}


def restore(sidecar: bytes, former: dict[str, Any]) -> bytes:
    """The history without the added steps; the others are renumbered."""
    check_shape(former, FORMER, "the former history")
    packet = Packet(sidecar)
    steps, places = _read_history(packet)
    added = former.get("added", [["channelmixerrgb", "0", _IDLE_MIXER.hex()]])
    wanted = {(operation, priority): _decode(params) for operation, priority, params in added}
    wanted["temperature", "0"] = None  # the one in force is ours
    ours: list[Entry] = []
    for step in reversed(_done(packet, steps)):
        key = step.get("operation"), step.get("multi_priority", "0")
        if key in wanted and wanted[key] in (None, _decode(step.get("params", ""))):
            del wanted[key]
            ours.append(step)
    kept = [step for step in steps if not any(step is other for other in ours)]
    gone = len(_done(packet, steps)) - len(ours)
    numbers = {id(step): number for number, step in enumerate(kept)}
    for place, step in places.items():
        if id(step) not in numbers:
            packet.cut(place)
        elif step["num"] != str(numbers[id(step)]):
            for element in (place, *place.find(DESCRIPTION)):
                packet.put(element, _name("num"), str(numbers[id(step)]))
    replaced = former.get("replaced", [])
    if replaced:
        _append_steps(packet, replaced, len(kept))
    packet.set(_name("history_end"), str(gone + len(replaced)), "darktable")
    return packet.encode()


def _multipliers(step: Entry) -> str:
    """Those of red, green and blue in a white balance step, in hexadecimal; empty if it is switched off."""
    return (_decode(step.get("params", "")) or b"")[:12].hex() if step.get("enabled") == "1" else ""


def _illuminant(mixer: Entry) -> int:
    params = (_decode(mixer.get("params", "")) or b"")[_ILLUMINANT : _ILLUMINANT + 4]
    return int.from_bytes(params, "little", signed=True) if mixer.get("modversion") in _MIXER_VERSIONS else -1


def put_mark(sidecar: bytes, text: str) -> bytes:
    return put_property(sidecar, MARK, text)


def cut_mark(sidecar: bytes) -> tuple[bytes, str | None]:
    return cut_property(sidecar, MARK)


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _name(local: str) -> Name:
    return Name(DARKTABLE, local)
