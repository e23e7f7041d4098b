"""Laws of writing a white balance for other programs: it can be read back, the rest stays, twice is once."""

from __future__ import annotations

import base64
import io
import itertools
import re
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st

from c5.color import as_illuminant, gains
from c5.demo import VirtualCamera
from c5.demo.raw_files import Layout, encode_dng
from c5.errors import C5Error, ParameterError, ReadError
from c5.photos.outputs import BUILT_IN, find_caveats
from c5.photos.sidecars import adobe, darktable, dng, rawtherapee

CRS = "{http://ns.adobe.com/camera-raw-settings/1.0/}"
DT = "{http://darktable.sf.net/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"

LIGHTROOM = """\
<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 7.0">
 <!-- a comment -->
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/"
   xmp:Rating='4'
   crs:Version="14.2"
   crs:ProcessVersion="6.7"
   crs:WhiteBalance="As Shot"
   crs:Temperature="5150"
   crs:Tint="+7"
   crs:Exposure2012="+0.35"
   crs:HasSettings="True">
   <dc:title><rdf:Alt><rdf:li xml:lang="x-default">Zürich &amp; "lake" &lt;3</rdf:li></rdf:Alt></dc:title>
   <crs:Look><rdf:Description crs:Name="Adobe Color"><crs:Parameters><rdf:Description
     crs:Version="14.2" crs:Temperature="1"/></crs:Parameters></rdf:Description></crs:Look>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
       \r
<?xpacket end="w"?>""".encode()

ELEMENTS = b"""\
<x:xmpmeta xmlns:x='adobe:ns:meta/'><r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>
<r:Description r:about='' xmlns:c='http://ns.adobe.com/camera-raw-settings/1.0/'>
  <c:ProcessVersion>11.0</c:ProcessVersion>
  <c:Temperature>4000</c:Temperature>
  <c:Contrast2012>12</c:Contrast2012>
</r:Description>
<r:Description r:about='' xmlns:crs='urn:something-else' crs:note='kept'/>
</r:RDF></x:xmpmeta>
"""


OURS = {f"{CRS}{local}" for local in ("WhiteBalance", "Temperature", "Tint", "HasSettings")} | {f"{DT}history_end"}


def properties(sidecar: bytes) -> dict[str, str]:
    """The simple properties of an XMP packet, by expanded name, as a namespace-aware reader sees them."""
    found: dict[str, str] = {}
    (section,) = ElementTree.fromstring(sidecar).iter(f"{RDF}RDF")
    for description in section.findall(f"{RDF}Description"):
        pairs = [*description.attrib.items(), *((child.tag, (child.text or "").strip()) for child in description)]
        for name, value in pairs:
            assert name not in found or name not in OURS, f"{name} is there twice"
            found[name] = value
    return found


class TestAdobe:
    @given(kelvin=st.integers(2000, 50000), tint=st.integers(-150, 150))
    def test_a_new_sidecar_says_what_was_asked(self, kelvin: int, tint: int) -> None:
        said = properties(adobe.set_white_balance(None, kelvin, tint))
        assert said[f"{CRS}WhiteBalance"] == "Custom"
        assert (int(said[f"{CRS}Temperature"]), int(said[f"{CRS}Tint"])) == (kelvin, tint)
        assert said[f"{CRS}HasSettings"] == "True"
        assert said[f"{CRS}ProcessVersion"] == "11.0"

    @pytest.mark.parametrize("existing", [None, LIGHTROOM, ELEMENTS])
    def test_setting_twice_is_setting_once(self, existing: bytes | None) -> None:
        once = adobe.set_white_balance(existing, 3210, -12)
        assert adobe.set_white_balance(once, 3210, -12) == once
        other = adobe.set_white_balance(existing, 9000, 4)
        assert adobe.set_white_balance(other, 3210, -12) == once

    def test_what_else_a_sidecar_says_is_kept_byte_for_byte(self) -> None:
        made = adobe.set_white_balance(LIGHTROOM, 3210, -12)
        changes = [
            (b'crs:WhiteBalance="As Shot"', b'crs:WhiteBalance="Custom"'),
            (b'crs:Temperature="5150"', b'crs:Temperature="3210"'),
            (b'crs:Tint="+7"', b'crs:Tint="-12"'),
        ]
        expected = LIGHTROOM
        for old, new in changes:
            expected = expected.replace(old, new)
        assert made == expected

    def test_properties_may_be_elements(self) -> None:
        made = adobe.set_white_balance(ELEMENTS, 3210, -12)
        assert b"<c:Temperature>3210</c:Temperature>" in made
        before, after = properties(ELEMENTS), properties(made)
        assert after.items() >= {name: value for name, value in before.items() if "Temperature" not in name}.items()
        assert after[f"{CRS}Tint"] == "-12"
        # Rendering depends on it, and this sidecar has one.
        assert f"{CRS}Version" not in after

    def test_a_sidecar_of_another_program_gets_the_namespace(self) -> None:
        plain = b"""<RDF:RDF xmlns:RDF="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:crs="urn:other">
            <RDF:Description RDF:about="" crs:x="1"/></RDF:RDF>"""
        said = properties(adobe.set_white_balance(plain, 3210, 12))
        assert said[f"{CRS}Tint"] == "+12"
        assert said["{urn:other}x"] == "1"
        empty = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
        assert properties(adobe.set_white_balance(empty, 3210, 12))[f"{CRS}Temperature"] == "3210"

    def test_a_property_that_is_there_twice_is_there_once_afterwards(self) -> None:
        double = ELEMENTS.replace(b"crs:note='kept'", b"xmlns:c='%s' c:Temperature='1'" % CRS[1:-1].encode())
        assert properties(adobe.set_white_balance(double, 3210, 12))[f"{CRS}Temperature"] == "3210"

    @pytest.mark.parametrize(
        ("damaged", "message"),
        [
            (b"", "no element"),
            (LIGHTROOM[:700], "damaged"),
            (b"\xff\xfe<\0x\0", "not UTF-8"),
            (b"<html><body/></html>", "no XMP"),
            (LIGHTROOM.replace(b' xmlns:xmp="http://ns.adobe.com/xap/1.0/"', b""), "xmp: stands for"),
            (b'<!DOCTYPE r [<!ENTITY a "b">]>' + ELEMENTS, "entities"),
            (b'<!DOCTYPE r SYSTEM "file:///etc/passwd">' + ELEMENTS, "entities"),
        ],
    )
    def test_damaged_and_hostile_sidecars_are_named_with_a_remedy(self, damaged: bytes, message: str) -> None:
        for kind in ("adobe", "darktable"):
            with pytest.raises(ReadError, match=f"(?s){message}.*save it again.*remove it") as caught:
                WRITERS[kind][1](damaged)
            assert "\n" not in str(caught.value)

    def test_an_entity_bomb_is_refused_at_once(self) -> None:
        lines = [f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12)]
        bomb = f'<!DOCTYPE b [<!ENTITY l0 "ha">{"".join(lines)}]><b>&l11;</b>'.encode()
        began = time.perf_counter()
        with pytest.raises(ReadError, match="entities"):
            adobe.set_white_balance(bomb, 3210, 0)
        assert time.perf_counter() - began < 1

    @pytest.mark.parametrize(("kelvin", "tint"), [(1999, 0), (50001, 0), (5000, 151), (5000, -151)])
    def test_what_the_sliders_do_not_have_is_refused(self, kelvin: int, tint: int) -> None:
        with pytest.raises(ParameterError, match="2000 to 50000 K"):
            adobe.set_white_balance(None, kelvin, tint)


PP3 = b"""\
# a comment
[Version]
AppVersion=5.9
Version=349

[General]
Rank=3
Unknown key[de] = x = 1

[White Balance]
Enabled=false
Setting=Camera
Temperature = 5000
Green=1.05
Equal=0.9
TemperatureBias=0

[Color appearance]
Enabled=false
Temperature=1
"""


def white_balance(pp3: bytes) -> dict[str, str]:
    """The section as GLib's key files are read: a later line wins."""
    found, section = {}, ""
    for line in pp3.decode("latin-1").split("\n"):
        if match := re.fullmatch(r"\[([^\[\]]+)\]", line.strip()):
            section = match[1]
        elif section == "White Balance" and "=" in line:
            key, _, value = line.partition("=")
            found[key.strip()] = value.strip()
    return found


class TestRawTherapee:
    @given(kelvin=st.integers(1500, 60000), green=st.floats(0.02, 10))
    def test_a_new_sidecar_says_what_was_asked(self, kelvin: int, green: float) -> None:
        said = white_balance(rawtherapee.set_white_balance(None, kelvin, green))
        assert (said["Enabled"], said["Setting"], said["Equal"]) == ("true", "Custom", "1")
        assert int(said["Temperature"]) == kelvin
        assert float(said["Green"]) == pytest.approx(green, abs=1e-6)

    @pytest.mark.parametrize(
        "existing", [None, b"", PP3, PP3.replace(b"\n", b"\r\n"), PP3.rstrip(), b"[White Balance]"]
    )
    def test_setting_twice_is_setting_once(self, existing: bytes | None) -> None:
        once = rawtherapee.set_white_balance(existing, 3210, 0.98)
        assert rawtherapee.set_white_balance(once, 3210, 0.98) == once
        other = rawtherapee.set_white_balance(existing, 8000, 1.5)
        assert rawtherapee.set_white_balance(other, 3210, 0.98) == once

    @pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
    def test_every_other_line_is_kept(self, ending: bytes) -> None:
        made = rawtherapee.set_white_balance(PP3.replace(b"\n", ending), 3210, 0.98)
        expected = PP3.replace(b"false\nSetting=Camera", b"true\nSetting=Custom")
        expected = expected.replace(
            b"Temperature = 5000\nGreen=1.05\nEqual=0.9", b"Temperature=3210\nGreen=0.980000\nEqual=1"
        )
        expected = expected.replace(b"Bias=0\n", b"Bias=0\nStandardObserver=TEN_DEGREES\n")
        assert made == expected.replace(b"\n", ending)

    def test_a_sidecar_without_the_section_gets_it(self) -> None:
        made = rawtherapee.set_white_balance(b"[General]\nRank=3", 3210, 0.98)
        assert made.startswith(b"[General]\nRank=3\n\n[White Balance]\nEnabled=true\n")

    def test_a_section_that_is_there_twice_agrees_with_itself(self) -> None:
        made = rawtherapee.set_white_balance(PP3 + b"\n[White Balance]\nTemperature=1\nSetting=Camera\n", 3210, 0.98)
        assert white_balance(made).items() >= {"Temperature": "3210", "Setting": "Custom", "Green": "0.980000"}.items()
        assert made.count(b"StandardObserver") == 1

    @pytest.mark.parametrize(
        "damaged", [b"<xml/>", b"Rank=3\n[General]\n", PP3 + b"a=\0", b"\xff\xd8\xff", PP3 + b"?", PP3 + b"[a] b]=1"]
    )
    def test_damaged_sidecars_are_named_with_a_remedy(self, damaged: bytes) -> None:
        with pytest.raises(ReadError, match=r"line \d+ .*correct it, or remove the file"):
            rawtherapee.set_white_balance(damaged, 3210, 1)

    @pytest.mark.parametrize(("kelvin", "green"), [(1499, 1), (60001, 1), (5000, 0.01), (5000, 11), (5000, np.nan)])
    def test_what_the_sliders_do_not_have_is_refused(self, kelvin: int, green: float) -> None:
        with pytest.raises(ParameterError, match="1500 to 60000 K"):
            rawtherapee.set_white_balance(None, kelvin, green)


def mixer(illuminant: int, adaptation: int = 1) -> bytes:
    """Parameters of color calibration, version 3, with a mix of its own."""
    numbers = [0.9, 0.1, 0, 0, 0, 1, 0, 0, 0.2, 0, 0.8, 0, *[0] * 12]
    return struct.pack("<24f6i4i4f2i", *numbers, *[0] * 6, illuminant, 3, 1, adaptation, 0.38, 0.39, 4000, 1, 1, 2)


def packed(params: bytes) -> str:
    return "gz03" + base64.b64encode(zlib.compress(params)).decode()


def history(*steps: str, end: int | None = None, more: str = "", applied: int = 1) -> bytes:
    """A sidecar of darktable."""
    items = "".join(f'<rdf:li darktable:num="{i}" {step}/>\n' for i, step in enumerate(steps))
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:darktable="http://darktable.sf.net/"
   xmp:Rating="2" darktable:xmp_version="5" darktable:auto_presets_applied="{applied}" darktable:iop_order_version="2"
   darktable:history_end="{len(steps) if end is None else end}" darktable:history_current_hash="c0ffee">
   <darktable:masks_history><rdf:Seq/></darktable:masks_history>
   <darktable:history><rdf:Seq>{items}</rdf:Seq></darktable:history>{more}
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
""".encode()


def step(operation: str, params: str, enabled: int = 1, version: int = 3, priority: int = 0) -> str:
    fields = {
        "operation": operation,
        "enabled": enabled,
        "modversion": version,
        "params": params,
        "multi_name": "a&amp;b",
    }
    fields |= {"multi_priority": priority, "blendop_version": 11, "blendop_params": "gz14eJxjYIAACQYYOOHEgAZY0QVwggZ7"}
    return " ".join(f'darktable:{key}="{value}"' for key, value in fields.items())


def in_two_descriptions(sidecar: bytes) -> bytes:
    """The same with the history in a description of its own, and another prefix in the first."""
    head, sign, tail = sidecar.partition(b"   <darktable:masks")
    head = head.replace(b"xmlns:darktable", b"xmlns:dt").replace(b"darktable:", b"dt:")
    between = b'</rdf:Description><rdf:Description rdf:about="" xmlns:darktable="http://darktable.sf.net/">'
    return head + between + sign + tail


EXPOSURE = step("exposure", "00000000000080b93333333f00004842000080c001000000", version=6)
DAYLIGHT = step("temperature", struct.pack("<4f", 1.7, 1, 1.2, np.nan).hex())

DARKTABLES = {
    "new": None,
    "of another program": LIGHTROOM,
    "without history": history(applied=0),
    "old, without history": history().replace(b'xmp_version="5"', b'xmp_version="3"'),
    "legacy": history(EXPOSURE, DAYLIGHT),
    "modern": history(DAYLIGHT, step("channelmixerrgb", packed(mixer(10))), EXPOSURE),
    "two mixers": history(
        step("channelmixerrgb", mixer(10).hex()),
        step("channelmixerrgb", packed(mixer(7)), priority=1),
        step("channelmixerrgb", packed(mixer(0)), priority=2),
        DAYLIGHT,
    ),
    "future mixer": history(step("channelmixerrgb", packed(b"\1" * 300), version=9)),
    "two descriptions": in_two_descriptions(history(EXPOSURE)),
    "undone": history(EXPOSURE, DAYLIGHT, step("sharpen", "00"), end=1),
    "as elements": re.sub(
        rb'<rdf:li darktable:num="(\d)" (.*)/>',
        lambda it: b'<rdf:li rdf:parseType="Resource"><darktable:num>' + it[1] + b"</darktable:num>"
        + re.sub(rb'darktable:(\w+)="([^"]*)"', rb"<darktable:\1>\2</darktable:\1>", it[2]) + b"</rdf:li>",
        history(EXPOSURE, step("channelmixerrgb", packed(mixer(10)))),
    ),
}  # fmt: skip


def steps_of(sidecar: bytes) -> list[dict[str, str]]:
    """The history as darktable counts it: in the order of num, as far as history_end."""
    said = properties(sidecar)
    found = []
    for item in ElementTree.fromstring(sidecar).findall(f".//{DT}history/*/{RDF}li"):
        pairs = [*item.attrib.items(), *((child.tag, child.text or "") for child in item)]
        found.append({name.removeprefix(DT): value for name, value in pairs})
    assert int(said[f"{DT}xmp_version"]) >= 4
    found.sort(key=lambda each: int(each["num"]))
    assert [int(each["num"]) for each in found] == list(range(len(found)))
    return found[: int(said[f"{DT}history_end"])]


def params_of(entry: dict[str, str]) -> bytes:
    text = entry["params"]
    return zlib.decompress(base64.b64decode(text[4:])) if text.startswith("gz") else bytes.fromhex(text)


class TestDarktable:
    @pytest.mark.parametrize("existing", DARKTABLES.values(), ids=DARKTABLES)
    def test_white_balance_multiplies_and_nothing_adapts(self, existing: bytes | None) -> None:
        steps = steps_of(darktable.set_multipliers(existing, [2.25, 1, 1.5]))
        latest = {(each["operation"], each["multi_priority"]): each for each in steps}
        red, green, blue, fourth = struct.unpack("<4f", params_of(latest["temperature", "0"]))
        assert (red, green, blue) == (2.25, 1, 1.5)
        assert np.isnan(fourth)
        assert latest["temperature", "0"]["enabled"] == "1"
        for (operation, _), entry in latest.items():
            if operation == "channelmixerrgb" and entry["enabled"] == "1":
                assert struct.unpack_from("<i", params_of(entry), 120) == (0,)

    @pytest.mark.parametrize("existing", DARKTABLES.values(), ids=DARKTABLES)
    def test_setting_twice_is_setting_once(self, existing: bytes | None) -> None:
        once = darktable.set_multipliers(existing, [2.25, 1, 1.5])
        assert darktable.set_multipliers(once, [2.25, 1, 1.5]) == once
        other = darktable.set_multipliers(existing, [1.25, 1, 3])
        assert steps_of(darktable.set_multipliers(other, [2.25, 1, 1.5])) == steps_of(once)

    @pytest.mark.parametrize("existing", [it for it in DARKTABLES.values() if it], ids=list(DARKTABLES)[1:])
    def test_everything_else_is_kept(self, existing: bytes) -> None:
        made = darktable.set_multipliers(existing, [2.25, 1, 1.5])
        ours = {
            "history_end",
            "history_current_hash",
            "auto_presets_applied",
            "xmp_version",
            "iop_order_version",
            "history",
        }
        before, after = properties(existing), properties(made)
        assert {k: v for k, v in before.items() if k.removeprefix(DT) not in ours}.items() <= after.items()
        assert f"{DT}history_current_hash" not in after
        if before.get(f"{DT}xmp_version") == "5":
            old, new = steps_of(existing), steps_of(made)
            kept = old[:-1] if old and old[-1]["operation"] == "temperature" and len(new) == len(old) else old
            assert new[: len(kept)] == kept

    def test_a_mix_of_channels_outlives_the_adaptation(self) -> None:
        made = steps_of(darktable.set_multipliers(DARKTABLES["two mixers"], [2, 1, 1.5]))
        assert [each["operation"] for each in made[4:]] == ["channelmixerrgb"] * 2 + ["temperature"]
        for entry, illuminant in zip(made[4:6], (10, 7), strict=True):
            assert params_of(entry)[:120] == mixer(illuminant)[:120]
            assert params_of(entry)[124:] == mixer(illuminant)[124:]
            assert entry["multi_name"] == "a&b"
            assert entry["blendop_params"].startswith("gz14")

    def test_a_mixer_that_does_not_adapt_is_left_alone(self) -> None:
        for params in (mixer(0), mixer(10, adaptation=4)):
            made = steps_of(darktable.set_multipliers(history(step("channelmixerrgb", params.hex())), [2, 1, 1.5]))
            assert [each["operation"] for each in made] == ["channelmixerrgb", "temperature"]
        off = steps_of(darktable.set_multipliers(history(step("channelmixerrgb", "00", enabled=0)), [2, 1, 1.5]))
        assert len(off) == 2

    def test_one_of_a_version_to_come_is_switched_off(self) -> None:
        made = steps_of(darktable.set_multipliers(DARKTABLES["future mixer"], [2, 1, 1.5]))
        assert [each["enabled"] for each in made] == ["1", "0", "1"]

    def test_darktable_still_adds_its_modules_to_a_new_one(self) -> None:
        for existing in (None, LIGHTROOM, history(applied=1)):
            made = darktable.set_multipliers(existing, [2, 1, 1.5])
            assert properties(made)[f"{DT}auto_presets_applied"] == "0"
            assert [(each["operation"], each["enabled"]) for each in steps_of(made)] == [
                ("channelmixerrgb", "0"),
                ("temperature", "1"),
            ]
        assert properties(darktable.set_multipliers(history(EXPOSURE), [2, 1, 1]))[f"{DT}auto_presets_applied"] == "1"

    def test_undone_steps_go(self) -> None:
        made = steps_of(darktable.set_multipliers(DARKTABLES["undone"], [2, 1, 1.5]))
        assert [each["operation"] for each in made] == ["exposure", "temperature"]

    @pytest.mark.parametrize("version", ["2", "3", "", "five"])
    def test_old_sidecars_are_refused_with_a_remedy(self, version: str) -> None:
        old = history(EXPOSURE).replace(b'xmp_version="5"', f'xmp_version="{version}"'.encode())
        with pytest.raises(ReadError, match=r"before 3\.2: open the photograph once"):
            darktable.set_multipliers(old, [2, 1, 1])

    def test_numbers_may_have_gaps(self) -> None:
        gap = history(EXPOSURE, DAYLIGHT).replace(b'num="0"', b'num="7"')
        once = darktable.set_multipliers(gap, [2, 1, 1.5])
        assert b'num="8"' in once
        assert darktable.set_multipliers(once, [2, 1, 1.5]) == once

    def test_a_history_without_numbers_is_damaged(self) -> None:
        with pytest.raises(ReadError, match="history is damaged: save it again"):
            darktable.set_multipliers(history(EXPOSURE).replace(b"darktable:num=", b"darktable:mum="), [2, 1, 1])

    def test_multipliers_fit_the_sliders(self) -> None:
        made = steps_of(darktable.set_multipliers(None, [1, 2, 32]))
        assert struct.unpack("<4f", params_of(made[-1]))[:3] == (0.25, 0.5, 8)
        for wrong in ([1, 1], [0, 1, 1], [np.inf, 1, 1], [1, 1, 1, 1]):
            with pytest.raises(ParameterError, match="three finite numbers"):
                darktable.set_multipliers(None, wrong)


def test_sidecars_stand_where_the_programs_look() -> None:
    photo = Path("folder/IMG_1.CR3")
    assert [each.path_beside(photo).name for each in (adobe, rawtherapee, darktable)] == [
        "IMG_1.xmp",
        "IMG_1.CR3.pp3",
        "IMG_1.CR3.xmp",
    ]


ILLUMINANT = as_illuminant([0.437123456, 1, 0.761987654])
PIXELS = bytes(range(256)) * 2


def rationals(order: str, *values: float) -> tuple[int, int, bytes]:
    parts = [part for value in values for part in (round(value * 1000), 1000)]
    return 5, len(values), struct.pack(f"{order}{len(parts)}I", *parts)


def build_dng(order: str, extra: dict[int, tuple[int, int, bytes]], pad: bytes = b"", *, share: bool = False) -> bytes:
    """A small DNG as cameras write them: a thumbnail first, and the raw image in a directory below it."""
    shorts: Callable[..., tuple[int, int, bytes]] = lambda *it: (3, len(it), struct.pack(f"{order}{len(it)}H", *it))  # noqa: E731
    data = (b"II*\0" if order == "<" else b"MM\0*") + bytes(4) + PIXELS

    def directory(tags: dict[int, tuple[int, int, bytes]]) -> int:
        nonlocal data
        entries = b""
        stored: dict[bytes, int] = {}
        for tag, (kind, count, value) in sorted(tags.items()):
            if len(value) > 4:
                if not (share and value in stored):
                    stored[value] = len(data)
                    data += value
                value = struct.pack(f"{order}I", stored[value])
            entries += struct.pack(f"{order}HHI", tag, kind, count) + value.ljust(4, b"\0")
        data += b"\0" * (len(data) % 2)
        place = len(data)
        data += struct.pack(f"{order}H", len(tags)) + entries + bytes(4)
        return place

    image = {256: shorts(16), 257: shorts(16), 258: shorts(16), 259: shorts(1), 277: shorts(1), 278: shorts(16)}
    image |= {273: (4, 1, struct.pack(f"{order}I", 8)), 279: (4, 1, struct.pack(f"{order}I", len(PIXELS)))}
    raw = directory({**image, 254: (4, 1, struct.pack(f"{order}I", 0)), 262: shorts(32803)})
    first = {
        **image,
        254: (4, 1, struct.pack(f"{order}I", 1)),
        262: shorts(1),
        330: (4, 1, struct.pack(f"{order}I", raw)),
    }
    first |= {271: (2, 8, b"Virtual\0"), 50706: (1, 4, b"\1\4\0\0"), **extra}
    place = directory(first)
    return data[:4] + struct.pack(f"{order}I", place) + data[8:] + pad


def tags_of(data: bytes) -> dict[int, object]:
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        return {tag.code: tag.value for tag in file.pages.first.tags.values()}


def neutral_of(data: bytes) -> np.ndarray:
    numbers = np.array(tags_of(data)[50728], dtype=np.float64)
    return numbers[::2] / numbers[1::2]


def white_xy(order: str) -> dict[int, tuple[int, int, bytes]]:
    return {50729: rationals(order, 0.345, 0.358)}


def as_shot(order: str) -> dict[int, tuple[int, int, bytes]]:
    return {50728: rationals(order, 0.5, 1, 0.5), 50727: rationals(order, 1.2, 1, 1.1)}


DNGS = {
    f"{name} {'II' if order == '<' else 'MM'}": (order, data)
    for order in "<>"
    for name, data in {
        "with neutral": build_dng(order, as_shot(order)),
        "without": build_dng(order, {}),
        "odd length": build_dng(order, {}, b"\0"),
        "white xy": build_dng(order, white_xy(order)),
        "both": build_dng(order, as_shot(order) | white_xy(order)),
        "shared values": build_dng(
            order, {50727: rationals(order, 1, 1, 1), 50728: rationals(order, 1, 1, 1)}, share=True
        ),
        "signed": build_dng(order, {50728: (10, *rationals(order, 0.5, 1, 0.5)[1:])}),
    }.items()
}


class TestDng:
    @pytest.mark.parametrize(("order", "data"), DNGS.values(), ids=DNGS)
    def test_the_neutral_is_replaced_and_nothing_else(self, order: str, data: bytes) -> None:
        made = dng.replace_neutral(data, ILLUMINANT)
        np.testing.assert_allclose(neutral_of(made), ILLUMINANT / ILLUMINANT.max(), atol=1e-9)
        before, after = tags_of(data), tags_of(made)
        changed = {50728, 50729}
        assert {k: v for k, v in after.items() if k not in changed} == {
            k: v for k, v in before.items() if k not in changed
        }
        assert 50729 not in after
        assert made[8 : 8 + len(PIXELS)] == PIXELS
        # Only the header's pointer and the old values may differ in what was there.
        differing = [i for i, (a, b) in enumerate(zip(data, made, strict=False)) if a != b]
        assert len([i for i in differing if i >= 8]) <= 24
        with tifffile.TiffFile(io.BytesIO(data)) as old, tifffile.TiffFile(io.BytesIO(made)) as new:
            for page, other in zip(
                (old.pages[0], *old.pages[0].pages), (new.pages[0], *new.pages[0].pages), strict=True
            ):
                np.testing.assert_array_equal(page.asarray(), other.asarray())
        codes = list(after)
        assert codes == sorted(codes)

    @pytest.mark.parametrize(("order", "data"), DNGS.values(), ids=DNGS)
    def test_replacing_twice_is_replacing_once(self, order: str, data: bytes) -> None:
        once = dng.replace_neutral(data, ILLUMINANT)
        assert dng.replace_neutral(once, ILLUMINANT) == once
        assert dng.replace_neutral(dng.replace_neutral(data, [1, 2, 3]), ILLUMINANT) == once

    def test_a_neutral_of_its_own_is_replaced_in_its_place(self) -> None:
        _, data = DNGS["with neutral II"]
        assert len(dng.replace_neutral(data, ILLUMINANT)) == len(data)

    @pytest.mark.parametrize("layout", [Layout(), Layout(lossless_jpeg=True), Layout(pattern="")])
    def test_pictures_of_rendered_cameras_stay_as_they_are(self, layout: Layout) -> None:
        camera = VirtualCamera.random(np.random.default_rng(3))
        raw = np.random.default_rng(0).integers(600, 9000, (64, 96, 3)).astype(np.uint16)
        data = encode_dng(raw, camera, layout)
        made = dng.replace_neutral(data, ILLUMINANT)
        np.testing.assert_array_equal(tifffile.imread(io.BytesIO(made)), tifffile.imread(io.BytesIO(data)))
        np.testing.assert_allclose(gains(neutral_of(made)), gains(ILLUMINANT), atol=1e-8)

    @pytest.mark.parametrize(("order", "data"), DNGS.values(), ids=DNGS)
    def test_a_file_cut_short_anywhere_is_refused(self, order: str, data: bytes) -> None:
        for length in range(0, len(data) - 1, 3):
            with pytest.raises(ReadError):
                dng.replace_neutral(data[:length], ILLUMINANT)

    @pytest.mark.parametrize("order", ["<", ">"])
    def test_hostile_structures_are_refused_at_once(self, order: str) -> None:
        data = build_dng(order, as_shot(order))
        first = struct.unpack(f"{order}I", data[4:8])[0]

        def with_next(place: int) -> bytes:
            return data[:-4] + struct.pack(f"{order}I", place)

        def with_tag(tag: int, kind: int, count: int, value: int) -> bytes:
            place = data.index(struct.pack(f"{order}H", tag), first)
            return data[:place] + struct.pack(f"{order}HHII", tag, kind, count, value) + data[place + 12 :]

        cases = {
            "no end": [with_next(first), with_tag(330, 4, 1, first)],
            "ends before": [with_next(2**32 - 1), with_tag(50728, 5, 2**32 - 1, 8), with_tag(273, 4, 1, 2**32 - 1)],
            "too many tags": [with_next(len(data)) + b"\0\0", with_next(len(data)) + b"\xff\xff" + bytes(900_000)],
            "holds no offsets": [with_tag(273, 2, 1, 8)],
        }
        for message, damaged in cases.items():
            for each in damaged:
                began = time.perf_counter()
                with pytest.raises(ReadError, match=f"damaged: .*{message}.*; copy it again") as caught:
                    dng.replace_neutral(each, ILLUMINANT)
                assert time.perf_counter() - began < 1
                assert "\n" not in str(caught.value)

    def test_what_is_no_dng_is_refused(self) -> None:
        buffer = io.BytesIO()
        tifffile.imwrite(buffer, np.zeros((8, 8), np.uint16))
        with pytest.raises(ReadError, match="without DNGVersion; convert it"):
            dng.replace_neutral(buffer.getvalue(), ILLUMINANT)
        for data in (b"", b"II", b"II+\0" + bytes(40), LIGHTROOM):
            with pytest.raises(ReadError, match="not a DNG"):
                dng.replace_neutral(data, ILLUMINANT)
        with pytest.raises(ParameterError, match="illuminant"):
            dng.replace_neutral(DNGS["without II"][1], [0, 1, 1])


WRITERS: dict[str, tuple[list[bytes], Callable[[bytes], bytes]]] = {
    "adobe": ([LIGHTROOM, ELEMENTS], lambda it: adobe.set_white_balance(it, 3210, -12)),
    "darktable": ([it for it in DARKTABLES.values() if it], lambda it: darktable.set_multipliers(it, [2.25, 1, 1.5])),
    "rawtherapee": ([PP3], lambda it: rawtherapee.set_white_balance(it, 3210, 0.98)),
    "dng": ([data for _, data in DNGS.values()], lambda it: dng.replace_neutral(it, ILLUMINANT)),
}


def check(kind: str, made: bytes) -> None:
    """That a result says what was asked, to another reader than ours."""
    if kind in ("adobe", "darktable") and b"}" in made:
        return  # ElementTree reads no namespace with a brace
    if kind == "adobe":
        said = properties(made)
        assert (said[f"{CRS}Temperature"], said[f"{CRS}Tint"]) == ("3210", "-12")
    elif kind == "darktable":
        ElementTree.fromstring(made)
        assert struct.pack("<3f", 2.25, 1, 1.5).hex().encode() in made
    elif kind == "rawtherapee":
        assert white_balance(made).items() >= {"Temperature": "3210", "Setting": "Custom"}.items()


@pytest.mark.parametrize("kind", WRITERS)
def test_damaged_bytes_give_a_result_or_an_error_of_one_line(kind: str) -> None:
    originals, write = WRITERS[kind]
    rng = np.random.default_rng(0)
    fine = 0
    for original in itertools.islice(itertools.cycle(originals), 2500):
        data = bytearray(original)
        for _ in range(rng.integers(1, 5)):
            place = int(rng.integers(len(data)))
            match rng.integers(4):
                case 0:
                    data[place] = rng.integers(256)
                case 1:
                    data[place] ^= 1 << int(rng.integers(8))
                case 2:
                    del data[place : place + int(rng.integers(1, 30))]
                case _:
                    data[place:place] = data[: int(rng.integers(1, 30))]
            if not data:
                break
        made, message = b"", ""
        try:
            made = write(bytes(data))
        except C5Error as error:
            message = str(error)
        assert "\n" not in message
        if made:
            fine += 1
            check(kind, made)
            assert write(made) == made
    assert fine > 20


def test_what_a_program_will_not_read_is_said_once_for_a_set() -> None:
    paths = [Path("a.dng"), Path("b.DNG"), Path("c.nef")]
    (caveat,) = find_caveats((BUILT_IN["xmp"], path) for path in paths)
    assert "do not read sidecars of DNG files" in caveat
    assert not find_caveats([(BUILT_IN["xmp"], paths[2])])
    assert not find_caveats((output, path) for name, output in BUILT_IN.items() if name != "xmp" for path in paths)
