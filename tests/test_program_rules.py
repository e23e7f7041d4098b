"""Balances by the rules of the programs that read them, written down here a second time, where no program is needed.

`test_programs.py` asks the programs themselves.
"""

from __future__ import annotations

import configparser
import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
import tifffile
from dng_files import damage, rationals, with_tags
from dng_sdk import camera_white
from shots import BEYOND, KINDS, LIGHTS, take
from test_sidecars import CRS, ELEMENTS, LIGHTROOM, properties
from typer.testing import CliRunner

from c5.cli.app import app
from c5.color import Float64s, reproduction_error
from c5.colorimetry.spectra import black_body
from c5.colorimetry.temperature import NOTICEABLE_DEG, rawtherapee_neutral
from c5.errors import C5Error, ReadError
from c5.photos.outputs import BUILT_IN
from c5.photos.sidecars import adobe, dng, rawtherapee
from c5.photos.summary import describe, to_csv

SMALL = 64

CUSTOM = LIGHTROOM.replace(b'"As Shot"', b'"Custom"')
PACKETS = {
    "attributes": CUSTOM,
    "elements": ELEMENTS.replace(
        b"<c:Temperature>4000</c:Temperature>",
        b"<c:WhiteBalance>Custom</c:WhiteBalance><c:Temperature>4000</c:Temperature> <c:Tint>+9</c:Tint>",
    ),
    "in one line": re.sub(rb"\s+", b" ", CUSTOM[: CUSTOM.index(b"       \r")]),
    "apart": re.sub(rb'(crs:WhiteBalance="Custom")(.*)(crs:HasSettings)', rb"\2 \1 \3", CUSTOM, flags=re.DOTALL),
    "with zeros behind": CUSTOM + b"\0\0\0",
    "numbers of the camera": LIGHTROOM,
}
BALANCE = {f"{CRS}{name}" for name in ("WhiteBalance", "Temperature", "Tint")}


def rawtherapee_white(dng: bytes, pp3: bytes) -> Float64s:
    """What RawTherapee 5.9 divides out: dcraw.cc, `parse_tiff_ifd`, `cam_xyz_coeff`; rawimagesource.cc, `getImage`."""
    with tifffile.TiffFile(io.BytesIO(dng)) as file:
        tags = {tag.code: tag.value for tag in file.pages.first.tags}
    chosen = 0
    for code in (50778, 50779):
        chosen = code - 50778 if tags.get(code, 17) != 17 else chosen
    cam_xyz = np.divide(*np.reshape(tags[50721 + chosen], (9, 2)).T).reshape(3, 3)
    if 50729 in tags:
        x, y = np.divide(*np.reshape(tags[50729], (2, 2)).T)
        cam_xyz = cam_xyz * (np.array([x, y, 1 - x - y]) / (0.950456, 1, 1.088754))
    xyz_rgb = [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
    cam_rgb = cam_xyz @ xyz_rgb
    pre_mul = 1 / cam_rgb.sum(axis=1)
    cam_rgb = cam_rgb * pre_mul[:, None]
    settings = configparser.ConfigParser()
    settings.read_string(pp3.decode())
    balance = settings["White Balance"]
    light = rawtherapee_neutral(int(balance["Temperature"]), float(balance["Green"]), np.eye(3))
    return np.asarray((cam_rgb @ np.linalg.solve(xyz_rgb, light)) / pre_mul)


@pytest.mark.parametrize("light", ["lamp", "late sun"])
@pytest.mark.parametrize("kind", KINDS)
def test_rawtherapee_and_adobe_divide_out_what_was_found(tmp_path: Path, kind: str, light: str) -> None:
    shot = take(tmp_path, 7, LIGHTS[light](), KINDS[kind], SMALL)
    data = shot.path.read_bytes()
    assert reproduction_error(rawtherapee_white(data, rawtherapee.encode(shot.balance, None)), shot.illuminant) < 0.02
    assert reproduction_error(camera_white(data, adobe.encode(shot.balance, None)), shot.illuminant) < 0.2
    copy = dng.replace_neutral(data, shot.illuminant)
    assert reproduction_error(camera_white(copy), shot.illuminant) < 0.001
    assert describe(shot.balance, BUILT_IN.values())["note"] is None


@pytest.mark.parametrize("light", ["lamp", "late sun"])
def test_the_matrix_of_daylight_may_stand_first(tmp_path: Path, light: str) -> None:
    shot = take(tmp_path, 7, LIGHTS[light](), size=SMALL)
    cold, warm = ((10, rationals(*m.ravel())) for m in (shot.matrices.matrix_d65, shot.matrices.matrix_a))
    tags = {50721: cold, 50722: warm, 50778: (3, b"\x15\0"), 50779: (3, b"\x11\0")}
    data = with_tags(shot.path.read_bytes(), tags)
    shot.path.write_bytes(data)
    assert reproduction_error(rawtherapee_white(data, rawtherapee.encode(shot.balance, None)), shot.illuminant) < 0.02
    assert reproduction_error(camera_white(data, adobe.encode(shot.balance, None)), shot.illuminant) < 0.2


def test_what_rawtherapee_cannot_hold_is_said_in_degrees(tmp_path: Path) -> None:
    shot = take(tmp_path, 7, LIGHTS["shade"](), KINDS["AsShotWhiteXY"], SMALL)
    pp3 = rawtherapee.encode(shot.balance, None)
    off = reproduction_error(rawtherapee_white(shot.path.read_bytes(), pp3), shot.illuminant)
    assert off > 1
    assert f"60000 K, green 0.761 is nearest and leaves white {off:.1f}° off" in rawtherapee.note(shot.balance)


@pytest.mark.parametrize("packet", PACKETS)
def test_settings_in_a_dng_give_way_to_the_new_balance(tmp_path: Path, packet: str) -> None:
    shot = take(tmp_path, 7, LIGHTS["shade"](), size=SMALL)
    before = with_tags(shot.path.read_bytes(), {700: (1, PACKETS[packet])})
    after = dng.replace_neutral(before, shot.illuminant)
    assert reproduction_error(camera_white(after), shot.illuminant) < 0.001
    if packet != "numbers of the camera":
        assert reproduction_error(camera_white(before), shot.illuminant) > 5
    # No byte has moved, and none has changed but those of the balance.
    start, length = before.index(PACKETS[packet]), len(PACKETS[packet])
    old, new = before[start : start + length], after[start : start + length]
    neutral = [i for i in range(len(before)) if before[i] != after[i] and not start <= i < start + length]
    assert len(after) == len(before)
    assert neutral[-1] - neutral[0] < 24
    said, says = properties(old.rstrip(b"\0")), properties(new.rstrip(b"\0"))
    assert {key: said[key] for key in said.keys() - BALANCE} == {key: says[key] for key in says.keys() - BALANCE}
    assert says[f"{CRS}WhiteBalance"] == "As Shot"
    assert not says.keys() & (BALANCE - {f"{CRS}WhiteBalance"})
    assert dng.replace_neutral(after, shot.illuminant) == after


def test_a_packet_without_settings_stays_and_one_that_cannot_be_read_is_refused() -> None:
    other = LIGHTROOM.replace(b"camera-raw-settings", b"something-else")
    assert dng.follow_neutral(other) == other
    assert dng.follow_neutral(b"no xml at all") == b"no xml at all"
    with pytest.raises(ReadError, match="settings inside the DNG"):
        dng.follow_neutral(CUSTOM[:-200])
    # Where nothing can be written, nothing is said, and that means the same.
    alone = re.sub(rb'\s+crs:(Temperature|Tint)="[^"]*"', b"", PACKETS["in one line"])
    assert f"{CRS}WhiteBalance" not in properties(dng.follow_neutral(alone))


def test_damaged_packets_stay_as_long_as_they_were() -> None:
    rng = np.random.default_rng(0)
    for number in range(300):
        packet = damage(list(PACKETS.values())[number % len(PACKETS)], rng)
        try:
            assert len(dng.follow_neutral(packet)) == len(packet)
        except C5Error as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_pixels_that_lie_in_the_packet_are_not_changed(tmp_path: Path) -> None:
    shot = take(tmp_path, 7, LIGHTS["shade"](), size=SMALL)
    data = with_tags(shot.path.read_bytes(), {700: (1, CUSTOM)})
    start = data.index(CUSTOM)
    shared = with_tags(data, {271: (2, b"x" * 64)}).replace(b"x" * 64, b"y" * 64)
    place = shared.rindex(b"\x0f\x01\x02\x00")  # the entry of Make, whose text now lies inside of the packet
    shared = shared[: place + 8] + (start + 10).to_bytes(4, "little") + shared[place + 12 :]
    with pytest.raises(ReadError, match="something else"):
        dng.replace_neutral(shared, shot.illuminant)


@pytest.mark.parametrize("light", BEYOND)
def test_what_adobe_cannot_hold_is_said_in_degrees(tmp_path: Path, light: str) -> None:
    shot = take(tmp_path, 7, BEYOND[light](), size=SMALL)
    balance = shot.balance
    sidecar = adobe.encode(balance, None)
    off = reproduction_error(camera_white(shot.path.read_bytes(), sidecar), shot.illuminant)
    assert off > NOTICEABLE_DEG
    row = describe(balance, [BUILT_IN["xmp"]])
    kelvin, tint = (properties(sidecar)[f"{CRS}{name}"] for name in ("Temperature", "Tint"))
    assert f"{kelvin} K, tint {tint} is nearest and leaves white {off:.1f}° off" in row["note"]
    assert row["note"].replace('"', "") in to_csv([row]).replace('"', "")
    assert "leaves" not in (describe(balance, [BUILT_IN["darktable"]])["note"] or "")
    assert (row["kelvin"] in (1667, 100000)) == bool(re.search("[<>]1", row["note"]))


def test_the_run_says_what_was_clamped(tmp_path: Path) -> None:
    shot = take(tmp_path / "in", 7, black_body(1200), size=SMALL)
    shot.path.write_bytes(dng.replace_neutral(shot.path.read_bytes(), shot.illuminant))
    options = ["--xmp", "--csv", "--fallback", "camera", "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, ["balance", str(shot.path), *options])
    assert ran.exit_code == 0, ran.output
    (row,) = csv.DictReader((tmp_path / "out" / "balance.csv").open())
    text = " ".join(ran.output.split())
    assert "leaves white" in row["note"]
    assert row["note"] in text
    assert "<1667" in text
