"""Laws of what c5 writes into files of other programs: it can be told from a person's work, and taken back."""

from __future__ import annotations

import itertools
import re
import struct
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from test_sidecars import (
    DARKTABLES,
    DAYLIGHT,
    DT,
    ELEMENTS,
    EXPOSURE,
    LIGHTROOM,
    PP3,
    history,
    mixer,
    packed,
    properties,
    step,
    steps_of,
    white_balance,
)

from c5.color import as_illuminant
from c5.errors import C5Error, ReadError
from c5.photos.sidecars import adobe, darktable, rawtherapee
from c5.photos.sidecars.marks import CustomBalanceError, Form, is_marked, merge, take_back

DIGIKAM = b"""\
<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:digiKam="http://www.digikam.org/ns/1.0/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
   digiKam:PickLabel="0"
   xmp:Rating="3">
   <digiKam:TagsList>
    <rdf:Seq>
     <rdf:li>People/Zo\xc3\xab</rdf:li>
    </rdf:Seq>
   </digiKam:TagsList>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""

EXIFTOOL = b"""\
<?xpacket begin='\xef\xbb\xbf' id='W5M0MpCehiHzreSzNTczkc9d'?>
<x:xmpmeta xmlns:x='adobe:ns:meta/' x:xmptk='Image::ExifTool 12.57'>
<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>

 <rdf:Description rdf:about=''
  xmlns:crs='http://ns.adobe.com/camera-raw-settings/1.0/'>
  <crs:Tint>+7</crs:Tint>
  <crs:WhiteBalance>As Shot</crs:WhiteBalance>
 </rdf:Description>

 <rdf:Description rdf:about=''
  xmlns:xmp='http://ns.adobe.com/xap/1.0/'>
  <xmp:Rating>4</xmp:Rating>
 </rdf:Description>
</rdf:RDF>
</x:xmpmeta>
<?xpacket end='w'?>"""

BARE = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'

Write = Callable[[float], Callable[[bytes | None], bytes]]

FORMS: dict[str, tuple[Form, list[bytes], Write]] = {
    "adobe": (
        cast(Form, adobe),
        [LIGHTROOM, ELEMENTS, DIGIKAM, EXIFTOOL, BARE, LIGHTROOM.replace(b"\n", b"\r\n"), history(EXPOSURE)],
        lambda light: lambda base: adobe.set_white_balance(base, round(1000 * light), -12),
    ),
    "darktable": (
        cast(Form, darktable),
        [*(it for it in DARKTABLES.values() if it), DIGIKAM, EXIFTOOL, BARE],
        lambda light: lambda base: darktable.set_multipliers(base, [light, 1, 1.5]),
    ),
    "rawtherapee": (
        cast(Form, rawtherapee),
        [PP3, PP3.replace(b"\n", b"\r\n"), PP3.rstrip(), b"", b"[White Balance]", b"[General]\nRank=3\n", b"[A]\nb=1"],
        lambda light: lambda base: rawtherapee.set_white_balance(base, round(1000 * light), 0.98),
    ),
}

CASES = [(kind, index) for kind, (_, sidecars, _) in FORMS.items() for index in range(len(sidecars))]


def merged(kind: str, existing: bytes | None, light: float = 3, beside: bytes | None = None) -> bytes:
    form, _, write = FORMS[kind]
    return merge(form, write(light), existing, beside, replace_custom=True)


@pytest.mark.parametrize(("kind", "index"), CASES)
class TestForeign:
    def test_what_is_taken_back_leaves_no_trace(self, kind: str, index: int) -> None:
        form, sidecars, write = FORMS[kind]
        existing = sidecars[index]
        made = merged(kind, existing)
        assert is_marked(form, made)
        assert not is_marked(form, existing)
        assert form.read_balance(made) == form.read_balance(write(3)(existing))
        assert take_back(form, made) == existing
        assert take_back(form, existing) == existing
        # The mark is no balance, and the other writers do not mind it.
        assert form.read_balance(form.cut_mark(made)[0]) == form.read_balance(made)

    def test_twice_is_once_and_the_first_state_is_what_comes_back(self, kind: str, index: int) -> None:
        form, sidecars, _ = FORMS[kind]
        made = merged(kind, sidecars[index])
        assert merged(kind, made) == made
        other = merged(kind, made, 4)
        assert other == merged(kind, sidecars[index], 4)
        assert take_back(form, merged(kind, other, 5)) == sidecars[index]

    def test_a_balance_that_somebody_changes_is_theirs(self, kind: str, index: int) -> None:
        form, sidecars, write = FORMS[kind]
        changed = write(7)(merged(kind, sidecars[index]))
        assert take_back(form, changed) == changed
        with pytest.raises(CustomBalanceError, match="set by hand"):
            merge(form, write(3), changed)
        ours = merged(kind, changed)
        assert form.read_balance(ours) == form.read_balance(merged(kind, sidecars[index]))
        again = take_back(form, ours)
        assert again is not None
        assert form.read_balance(again) == form.read_balance(changed)


@pytest.mark.parametrize("kind", FORMS)
def test_a_sidecar_that_c5_made_goes_whole(kind: str) -> None:
    form, sidecars, write = FORMS[kind]
    made = merge(form, write(3), None)
    assert take_back(form, made) is None
    assert merge(form, write(3), made) == made
    assert take_back(form, merge(form, write(4), made)) is None
    # So does one that takes over what the sidecar beside the photograph says: that one stays.
    beside = sidecars[0]
    copy = merged(kind, None, beside=beside)
    assert take_back(form, copy) is None
    assert form.cut_mark(copy)[0] == form.cut_mark(merged(kind, beside))[0]
    assert merged(kind, copy, beside=beside) == copy


RATINGS = [
    ("adobe", LIGHTROOM, b"Rating='4'", b"Rating='1'"),
    ("adobe", DIGIKAM, b'Rating="3"', b'Rating="5"'),
    ("adobe", EXIFTOOL, b"<xmp:Rating>4<", b"<xmp:Rating>5<"),
    ("darktable", history(DAYLIGHT), b'Rating="2"', b'Rating="5"'),
    ("darktable", DARKTABLES["modern"], b'Rating="2"', b'Rating="5"'),
    ("rawtherapee", PP3, b"Rank=3", b"Rank=5"),
    ("rawtherapee", b"[General]\nRank=3\n", b"Rank=3", b"Rank=5"),
]


@pytest.mark.parametrize(("kind", "existing", "old", "new"), RATINGS)
def test_only_the_balance_goes_where_somebody_has_rated_since(kind: str, existing: Any, old: bytes, new: bytes) -> None:
    form = FORMS[kind][0]
    rated = merged(kind, existing).replace(old, new)
    assert new in rated
    left = take_back(form, rated)
    assert left is not None
    expected = existing.replace(old, new)
    if kind == "darktable":  # the digest of a former history cannot come back, and where a step stands may change
        assert steps_of(left) == steps_of(expected)
        ours = {f"{DT}{name}" for name in ("history", "history_current_hash")}
        assert {k: v for k, v in properties(left).items() if k not in ours} == {
            k: v for k, v in properties(expected).items() if k not in ours
        }
    elif kind == "rawtherapee":
        assert white_balance(left) == white_balance(expected)
        assert left.replace(b" = ", b"=").strip() == expected.replace(b" = ", b"=").strip()
    else:
        assert left == expected
    assert not is_marked(form, left)
    # Balancing it again is balancing it for the first time.
    assert take_back(form, merged(kind, rated, 5)) == left


def test_settings_that_came_later_keep_what_they_rest_on() -> None:
    made = merged("adobe", None)
    edited = made.replace(b"crs:Tint=", b'crs:Exposure2012="+1.00" crs:Tint=')
    left = take_back(cast(Form, adobe), edited)
    assert left is not None
    said = {name.rpartition("}")[2] for name in properties(left)}
    assert said == {"about", "Exposure2012", "Version", "ProcessVersion", "HasSettings"}


def test_steps_that_came_later_stay_in_the_history() -> None:
    made = merged("darktable", history(EXPOSURE, step("channelmixerrgb", packed(mixer(2)))))
    assert [each["operation"] for each in steps_of(made)][2:] == ["channelmixerrgb", "temperature"]
    more = re.sub(rb"</rdf:Seq></darktable:history>|</rdf:Seq>\s*</darktable:history>", b"<rdf:li %s/>\\g<0>" % (
        b'darktable:num="4" darktable:operation="sharpen" darktable:enabled="1" darktable:params="00"'
    ), made).replace(b'history_end="4"', b'history_end="5"')  # fmt: skip
    assert len(steps_of(more)) == 5
    left = take_back(cast(Form, darktable), more)
    assert left is not None
    assert [each["operation"] for each in steps_of(left)] == ["exposure", "channelmixerrgb", "sharpen"]


AS_SHOT = as_illuminant(1 / np.array([1.7, 1, 1.2]))


@pytest.mark.parametrize(
    ("kind", "sidecar", "expected"),
    [
        ("adobe", LIGHTROOM, False),  # As Shot, with the numbers of that
        ("adobe", DIGIKAM, False),
        ("adobe", LIGHTROOM.replace(b"As Shot", b"Custom"), True),
        ("adobe", LIGHTROOM.replace(b"As Shot", b"Daylight"), True),
        ("adobe", ELEMENTS, True),  # a temperature
        ("rawtherapee", b"[General]\nRank=3\n", False),
        ("rawtherapee", PP3.replace(b"Enabled=false\nSetting", b"Enabled=true\nSetting"), False),
        ("rawtherapee", PP3, True),  # switched off
        ("rawtherapee", b"[White Balance]\nSetting=Custom\nTemperature=4000\n", True),
        ("darktable", history(EXPOSURE), False),
        ("darktable", history(DAYLIGHT, EXPOSURE), False),  # as shot
        ("darktable", history(step("temperature", struct.pack("<4f", 2.7, 1, 1.2, 0).hex())), True),
        ("darktable", history(DAYLIGHT, EXPOSURE, DAYLIGHT), True),  # set once more
        ("darktable", history(DAYLIGHT, EXPOSURE, DAYLIGHT, end=2), False),  # which was undone
        ("darktable", history(DAYLIGHT, step("channelmixerrgb", packed(mixer(2)))), False),
        ("darktable", history(DAYLIGHT, step("channelmixerrgb", packed(mixer(7)))), True),
        ("darktable", DIGIKAM, False),
    ],
)
def test_what_a_person_has_set(kind: str, sidecar: bytes, expected: bool) -> None:
    form, _, write = FORMS[kind]
    assert form.is_custom(sidecar, AS_SHOT) == expected
    if expected:
        with pytest.raises(CustomBalanceError):
            merge(form, write(3), sidecar, as_shot=AS_SHOT)
    else:
        assert is_marked(form, merge(form, write(3), sidecar, as_shot=AS_SHOT))


@pytest.mark.parametrize("kind", FORMS)
def test_damaged_sidecars_and_marks_never_lose_more_than_the_balance(kind: str) -> None:
    form, sidecars, _ = FORMS[kind]
    rng = np.random.default_rng(0)
    done = 0
    for original in itertools.islice(itertools.cycle([*sidecars, *(merged(kind, it) for it in sidecars)]), 200):
        data = bytearray(original)
        for _ in range(rng.integers(1, 3)):
            place = int(rng.integers(max(len(data), 1)))
            if rng.integers(2) or not data:
                data[place : place + int(rng.integers(0, 3))] = bytes(
                    rng.integers(32, 127, int(rng.integers(0, 3))).tolist()
                )
            else:
                data[place] = rng.integers(256)
        try:
            left = take_back(form, bytes(data))
            made = merged(kind, bytes(data))
        except C5Error as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        done += 1
        assert merged(kind, made) == made
        if not is_marked(form, bytes(data)):
            assert left == bytes(data)
            assert take_back(form, made) == bytes(data)
    assert done > 20


def test_a_sidecar_of_thousands_of_namespaces_is_refused_at_once() -> None:
    count = 16_000
    deep = "".join(f"<a{i}:b xmlns:a{i}='urn:{i}'>" for i in range(count))
    deep += "".join(f"</a{i}:b>" for i in reversed(range(count)))
    names = " ".join(f"xmlns:a{i}='urn:{i}'" for i in range(count))
    wide = f"<r {names}>" + "".join(f"<b{i}:c xmlns:b{i}='urn:b{i}'/>" for i in range(count)) + "</r>"
    for text in (deep, wide):
        began = time.perf_counter()
        with pytest.raises(ReadError, match="too many namespaces"):
            adobe.set_white_balance(text.encode(), 3210, 0)
        assert time.perf_counter() - began < 2
