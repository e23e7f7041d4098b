"""White balances as other programs take them: a gray patch in colored light comes out gray.

Tried on exiftool 12.57, RawTherapee 5.9 and darktable 4.2.1; `make programs` installs them. Without a program its tests
are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tifffile
from dng_files import with_tags
from shots import BEYOND, KINDS, LIGHTS, Shot, take
from test_program_rules import PACKETS
from test_sidecars import DNGS, ELEMENTS, LIGHTROOM

from c5.color import Float64s, gains, reproduction_error, white_balance
from c5.colorimetry.spectra import black_body
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.groups import Sets
from c5.photos.outputs import BUILT_IN
from c5.photos.sidecars import adobe, darktable, dng, rawtherapee
from c5.photos.taste import Look


def run(home: Path, *arguments: str | Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    command = [str(argument) for argument in arguments]
    done = subprocess.run(command, env=environment | {"HOME": str(home)}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def gray_patch(pixels: Float64s) -> Float64s:
    height, width = pixels.shape[:2]
    patch = pixels[height // 4 : height * 3 // 4, width * 6 // 10 : width * 9 // 10, :3]
    return np.asarray(patch.reshape(-1, 3).mean(axis=0))


def off_gray(picture: Path) -> float:
    """How far the channels of the gray patch are apart, as a part of green."""
    patch = gray_patch(tifffile.imread(picture).astype(np.float64))
    assert 0.2 < patch[1] / 65535 < 0.9
    return float(np.ptp(patch) / patch[1])


def develop_rawtherapee(shot: Shot, home: Path) -> Path:
    """With the sidecar beside the file, as when the folder is opened."""
    out = shot.path.with_suffix(".tif")
    run(home, "rawtherapee-cli", "-Y", "-o", out, "-s", "-b16", "-t", "-c", shot.path)
    return out


def develop_darktable(shot: Shot, home: Path, adaptation: str, workflow: str = "scene-referred") -> Path:
    out = shot.path.with_suffix(".tif")
    out.unlink(missing_ok=True)
    settings = {
        "plugins/darkroom/chromatic-adaptation": adaptation,
        "plugins/darkroom/workflow": workflow,
        "plugins/imageio/format/tiff/bpp": "16",
        "write_sidecar_files": "never",
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    core = ["--core", "--configdir", str(home / adaptation), "--library", ":memory:", "--disable-opencl", *conf]
    run(home, "darktable-cli", shot.path, out, "--icc-type", "SRGB", *core)
    return out


needs_exiftool = pytest.mark.skipif(not shutil.which("exiftool"), reason="exiftool is not installed")
needs_rawtherapee = pytest.mark.skipif(not shutil.which("rawtherapee-cli"), reason="RawTherapee is not installed")
needs_darktable = pytest.mark.skipif(not shutil.which("darktable-cli"), reason="darktable is not installed")


def tags(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(run(path.parent, "exiftool", "-j", "-n", "-G1", path))[0]
    return found


def complaints(path: Path) -> list[str]:
    lines = run(path.parent, "exiftool", "-validate", "-warning", "-error", "-a", "-s3", path).splitlines()
    return lines[1:]  # the first one counts them


@needs_exiftool
@pytest.mark.parametrize("existing", [None, LIGHTROOM, ELEMENTS])
def test_exiftool_reads_our_xmp(tmp_path: Path, existing: bytes | None) -> None:
    path = tmp_path / "a.xmp"
    path.write_bytes(adobe.set_white_balance(existing, 3210, -12))
    found = tags(path)
    assert (found["XMP-crs:ColorTemperature"], found["XMP-crs:Tint"]) == (3210, -12)
    assert found["XMP-crs:WhiteBalance"] == "Custom"
    assert complaints(path) == []
    path.write_bytes(darktable.set_multipliers(path.read_bytes(), [2, 1, 1.5]))
    assert tags(path)["XMP-crs:ColorTemperature"] == 3210
    assert complaints(path) == []


@needs_exiftool
@pytest.mark.parametrize("name", DNGS)
def test_exiftool_finds_no_new_damage_in_our_dng(tmp_path: Path, name: str) -> None:
    before, after = tmp_path / "before.dng", tmp_path / "after.dng"
    before.write_bytes(DNGS[name][1])
    after.write_bytes(dng.replace_neutral(DNGS[name][1], [0.4371, 1, 0.7619]))
    old, new = tags(before), tags(after)
    neutral = [float(number) for number in str(new["IFD0:AsShotNeutral"]).split()]
    np.testing.assert_allclose(neutral, [0.4371, 1, 0.7619], atol=1e-6)
    assert "IFD0:AsShotWhiteXY" not in new
    kept = {key for key in old if key.startswith(("IFD0:", "SubIFD:")) and "AsShot" not in key}
    assert kept
    assert {key: old[key] for key in kept} == {key: new[key] for key in kept}
    assert set(complaints(after)) <= set(complaints(before))


@needs_exiftool
def test_exiftool_finds_no_new_damage_in_a_rendered_dng(tmp_path: Path) -> None:
    shot = take(tmp_path, 0, black_body(2856))
    before = complaints(shot.path)
    shot.path.write_bytes(dng.replace_neutral(shot.path.read_bytes(), shot.illuminant))
    assert complaints(shot.path) == before


@needs_rawtherapee
@pytest.mark.parametrize("light", LIGHTS)
def test_rawtherapee_makes_gray_gray(tmp_path: Path, light: str) -> None:
    shot = take(tmp_path, len(light), LIGHTS[light]())
    assert off_gray(develop_rawtherapee(shot, tmp_path)) > 0.1
    rawtherapee.path_beside(shot.path).write_bytes(rawtherapee.encode(shot.balance, None))
    assert off_gray(develop_rawtherapee(shot, tmp_path)) < 0.005


@needs_rawtherapee
def test_rawtherapee_makes_gray_gray_with_a_sidecar_of_its_own(tmp_path: Path) -> None:
    shot = take(tmp_path, 5, black_body(2400))
    own = tmp_path / "own.tif"
    run(tmp_path, "rawtherapee-cli", "-Y", "-O", own, "-d", "-b16", "-t", "-c", shot.path)
    (written,) = tmp_path.glob("own*.pp3")
    existing = written.read_bytes()
    assert existing.count(b"\n[") > 30
    rawtherapee.path_beside(shot.path).write_bytes(rawtherapee.encode(shot.balance, existing))
    assert off_gray(develop_rawtherapee(shot, tmp_path)) < 0.02


@needs_darktable
@pytest.mark.parametrize("adaptation", ["legacy", "modern"])
@pytest.mark.parametrize("light", LIGHTS)
def test_darktable_makes_gray_gray(tmp_path: Path, light: str, adaptation: str) -> None:
    shot = take(tmp_path, len(light), LIGHTS[light]())
    assert off_gray(develop_darktable(shot, tmp_path, adaptation)) > 0.1
    darktable.path_beside(shot.path).write_bytes(darktable.set_multipliers(None, gains(shot.illuminant)))
    assert off_gray(develop_darktable(shot, tmp_path, adaptation)) < 0.005


@needs_darktable
@needs_exiftool
@pytest.mark.parametrize("as_elements", [False, True])
@pytest.mark.parametrize("adaptation", ["legacy", "modern"])
def test_darktable_makes_gray_gray_with_a_sidecar_of_its_own(
    tmp_path: Path, adaptation: str, as_elements: bool
) -> None:
    shot = take(tmp_path, 5, black_body(2400))
    picture = develop_darktable(shot, tmp_path, adaptation)
    existing = run(tmp_path, "exiftool", "-b", "-xmp", picture).encode()
    assert (b"channelmixerrgb" in existing) == (adaptation == "modern")
    if as_elements:  # as exiftool and others write it
        existing = re.sub(
            rb"<rdf:li\s+(darktable:num[^>]*)/>",
            lambda item: (
                b'<rdf:li rdf:parseType="Resource">'
                + re.sub(rb'darktable:(\w+)="([^"]*)"', rb"<darktable:\1>\2</darktable:\1>", item[1])
                + b"</rdf:li>"
            ),
            existing,
        )
    made = darktable.set_multipliers(existing, gains(shot.illuminant))
    darktable.path_beside(shot.path).write_bytes(made)
    picture = develop_darktable(shot, tmp_path, adaptation)
    assert off_gray(picture) < 0.005
    assert b"filmicrgb" in run(tmp_path, "exiftool", "-b", "-xmp", picture).encode()  # the rest is in force


@needs_darktable
def test_darktable_would_adapt_twice_without_color_calibration_switched_off(tmp_path: Path) -> None:
    shot = take(tmp_path, 5, black_body(2400))
    made = darktable.set_multipliers(None, gains(shot.illuminant))
    alone = re.sub(rb'<rdf:li[^>]*"channelmixerrgb"[^>]*/>', b"", made).replace(b'num="1"', b'num="0"')
    darktable.path_beside(shot.path).write_bytes(alone.replace(b'history_end="2"', b'history_end="1"'))
    assert off_gray(develop_darktable(shot, tmp_path, "modern")) > 0.02


@needs_rawtherapee
@needs_darktable
@pytest.mark.parametrize("light", ["lamp", "shade"])
def test_a_replaced_neutral_makes_gray_gray_in_both(tmp_path: Path, light: str) -> None:
    shot = take(tmp_path, 7, LIGHTS[light]())
    shot.path.write_bytes(dng.replace_neutral(shot.path.read_bytes(), shot.illuminant))
    assert off_gray(develop_rawtherapee(shot, tmp_path)) < 0.005
    assert off_gray(develop_darktable(shot, tmp_path, "legacy")) < 0.005
    # The modern workflow adapts colors in the light that it reads out of the tag, by way of the camera's one matrix.
    assert off_gray(develop_darktable(shot, tmp_path, "modern")) < 0.05


ODD = [(kind, "lamp") for kind in KINDS if kind != "plain"] + [("plain", light) for light in BEYOND]
"""Files that are not as most are, and lights that Adobe's programs cannot hold: RawTherapee and darktable can."""


@needs_rawtherapee
@needs_darktable
@pytest.mark.parametrize(("kind", "light"), ODD)
def test_odd_files_and_lights_come_out_gray(tmp_path: Path, kind: str, light: str) -> None:
    shot = take(tmp_path, 7, (LIGHTS | BEYOND)[light](), KINDS[kind])
    rawtherapee.path_beside(shot.path).write_bytes(rawtherapee.encode(shot.balance, None))
    darktable.path_beside(shot.path).write_bytes(darktable.encode(shot.balance, None))
    is_held = not rawtherapee.note(shot.balance)
    assert (off_gray(develop_rawtherapee(shot, tmp_path)) < 0.005) == is_held
    assert off_gray(develop_darktable(shot, tmp_path, "modern")) < 0.005


@needs_exiftool
@needs_rawtherapee
@needs_darktable
@pytest.mark.parametrize(("kind", "light"), ODD)
def test_copies_of_odd_files_come_out_gray(tmp_path: Path, kind: str, light: str) -> None:
    shot = take(tmp_path, 7, (LIGHTS | BEYOND)[light](), KINDS[kind])
    before, noted = complaints(shot.path), BUILT_IN["dng"].note(shot.balance)
    shot.path.write_bytes(dng.replace_neutral(shot.path.read_bytes(), shot.illuminant))
    found = tags(shot.path)
    neutral = [float(number) for number in str(found["IFD0:AsShotNeutral"]).split()]
    np.testing.assert_allclose(neutral, shot.illuminant / shot.illuminant.max(), atol=1e-6)
    assert "IFD0:AsShotWhiteXY" not in found
    assert set(complaints(shot.path)) <= set(before)
    assert (off_gray(develop_rawtherapee(shot, tmp_path)) < 0.005) == ("RawTherapee" not in noted)
    assert off_gray(develop_darktable(shot, tmp_path, "legacy")) < 0.005


@needs_rawtherapee
def test_beyond_its_range_rawtherapee_comes_as_near_as_it_can(tmp_path: Path) -> None:
    shot = take(tmp_path, 7, LIGHTS["shade"](), KINDS["AsShotWhiteXY"])
    sidecar = rawtherapee.path_beside(shot.path)
    assert "60000 K, green 0.761" in rawtherapee.note(shot.balance)
    sidecar.write_bytes(rawtherapee.encode(shot.balance, None))
    nearest = off_gray(develop_rawtherapee(shot, tmp_path))
    assert nearest > 0.02  # it is said to be off, and it is
    for kelvin, green in ((60000, 0.9), (60000, 0.65), (40000, 0.761), (20000, 0.8)):
        sidecar.write_bytes(rawtherapee.set_white_balance(None, kelvin, green))
        assert off_gray(develop_rawtherapee(shot, tmp_path)) > nearest


def patch_color(pixels: Float64s) -> Float64s:
    """The color of the gray patch of an sRGB picture in linear light, green = 1."""
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    color = gray_patch(linear)
    return np.asarray(color / color[1])


@needs_rawtherapee
@needs_darktable
@pytest.mark.parametrize(("light", "allowed"), [("lamp", 0.04), ("shade", 0.005)])
def test_both_leave_as_much_of_the_lights_color_as_our_preview(tmp_path: Path, light: str, allowed: float) -> None:
    """Both take the camera's matrix of D65 for every light, which tells at lamp light."""
    shot = take(tmp_path, 7, LIGHTS[light]())
    white = Look(strength=0.5).apply(shot.illuminant, shot.balance.photo.need_matrices())
    balance = replace(shot.balance, illuminant=white)
    # As `render` has it before its tone curve, in which the red of so bright a card ends.
    pixels = white_balance(balance.photo.reading.read(shot.path).image.rgb, white)
    own = gray_patch(pixels @ np.asarray(balance.photo.srgb_matrix(white)).T)
    own /= own[1]
    assert np.abs(own - 1).max() > 0.2
    rawtherapee.path_beside(shot.path).write_bytes(rawtherapee.encode(balance, None))
    darktable.path_beside(shot.path).write_bytes(darktable.encode(balance, None))
    for develop in (develop_rawtherapee, partial(develop_darktable, adaptation="modern", workflow="none")):
        picture = tifffile.imread(develop(shot, tmp_path)) / 65535
        np.testing.assert_allclose(patch_color(picture), own, atol=allowed)


@needs_rawtherapee
@needs_darktable
def test_white_looks_alike_in_the_photographs_of_a_group(tmp_path: Path) -> None:
    """In both programs, and much more so than where each photograph is balanced alone."""
    light = LIGHTS["lamp"]()
    shots = [take(tmp_path / str(colors), 7, light, colors=colors) for colors in (3, 4)]
    paths = [shot.path for shot in shots]
    apart: dict[str, list[float]] = {}
    for sets in (None, Sets(dict.fromkeys(paths, "1"))):
        done = [each for each in balance(paths, Settings(sets=sets)) if isinstance(each, Balance)]
        assert len(done) == 2
        for each in done:
            rawtherapee.path_beside(each.path).write_bytes(rawtherapee.encode(each, None))
            darktable.path_beside(each.path).write_bytes(darktable.encode(each, None))
        for program, develop in (
            ("RawTherapee", develop_rawtherapee),
            ("darktable", partial(develop_darktable, adaptation="modern", workflow="none")),
        ):
            seen = [patch_color(tifffile.imread(develop(shot, tmp_path)) / 65535) for shot in shots]
            apart.setdefault(program, []).append(float(np.abs(seen[0] - seen[1]).max()))
    for alone, together in apart.values():
        assert together < 0.006
        assert alone > 5 * together


@needs_darktable
def test_the_light_of_a_color_calibration_that_makes_gray_gray_is_read(tmp_path: Path) -> None:
    shot = take(tmp_path, 7, LIGHTS["lamp"]())
    photo = shot.balance.photo
    matrix = photo.need_matrices().matrix_d65
    x, y, z = darktable._D65_TO_D50 @ np.linalg.solve(matrix, shot.illuminant)
    params = bytearray(darktable._IDLE_MIXER)
    params[120:124], params[136:144] = struct.pack("<i", 7), struct.pack("<2f", x / (x + y + z), y / (x + y + z))
    made = darktable.set_multipliers(None, 1 / (matrix @ darktable._D65))
    made = made.replace(darktable._IDLE_MIXER.hex().encode(), bytes(params).hex().encode())
    made = made.replace(b'enabled="0"', b'enabled="1"')
    darktable.path_beside(shot.path).write_bytes(made)
    assert off_gray(develop_darktable(shot, tmp_path, "modern")) < 0.005
    found = darktable.read_illuminant(made, photo)
    assert found is not None
    assert reproduction_error(found, shot.illuminant) < 0.01


@needs_exiftool
@pytest.mark.parametrize("packet", PACKETS)
def test_exiftool_reads_settings_that_gave_way(tmp_path: Path, packet: str) -> None:
    shot = take(tmp_path, 7, LIGHTS["shade"](), size=64)
    shot.path.write_bytes(with_tags(shot.path.read_bytes(), {700: (1, PACKETS[packet])}))
    old, before = tags(shot.path), complaints(shot.path)
    shot.path.write_bytes(dng.replace_neutral(shot.path.read_bytes(), shot.illuminant))
    new = tags(shot.path)
    assert new["XMP-crs:WhiteBalance"] == "As Shot"
    assert not {"XMP-crs:ColorTemperature", "XMP-crs:Tint"} & new.keys()
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    balance = {"IFD0:AsShotNeutral", "XMP-crs:WhiteBalance", "XMP-crs:ColorTemperature", "XMP-crs:Tint"}
    assert {key for key in changed if not key.startswith(("System:", "File:"))} <= balance
    assert set(complaints(shot.path)) <= set(before)
