"""A stranger takes a rendered wedding from card to sidecars, with the commands of the README and a real Chromium.

Here with a few photographs. `make studio` takes 300 and has RawTherapee and darktable show what was written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from studio_shoots import digest_all, wait_for
from test_programs import develop_darktable, develop_rawtherapee
from test_studio_page import CHROMIUM, DRIVER, Page, chromium

from c5.color import Float64s, angular_error
from c5.io.raw import read_photograph
from c5.photos.outputs import BUILT_IN
from c5.photos.photo import Photo
from c5.photos.picture import develop

COUNT = int(os.environ.get("C5_STUDIO_PHOTOGRAPHS", "12"))
SHOWN = 3
"""Photographs that other programs develop."""

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and its driver are not installed")


def test_from_card_to_sidecars(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environment |= {"HOME": str(tmp_path / "home")}
    c5 = [sys.executable, "-m", "c5.cli"]
    wedding = tmp_path / "wedding"
    render = [*c5, "demo", "--shoot", "wedding", "--count", str(COUNT), "--out", str(wedding)]
    subprocess.run(render, env=environment, check=True, capture_output=True, timeout=600)
    before = digest_all(wedding)
    assert len(before) == COUNT
    command = [*c5, "studio", str(wedding), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        with chromium(tmp_path / "profile", height=900) as browser:
            page = Page(browser, process.stdout.readline().strip())
            walk_through(page)
    finally:
        process.terminate()
        process.wait()
    assert digest_all(wedding) == before
    photographs = sorted(wedding.glob("*.dng"))
    for path in photographs:
        lights = [read_back(path, name) for name in ("pp3", "darktable")]
        assert angular_error(*lights) < 0.5
    if COUNT >= 100:
        compare_programs(photographs, tmp_path / "home")


def walk_through(page: Page) -> None:
    """Look, correct the most doubtful light, agree to all of them, and write."""
    wait_for(lambda: re.search(r"\d groups?", page.text("counts")), 600)
    wait_for(lambda: not page.text("progress"), 600)
    assert f"{COUNT} photographs" in page.text("counts")
    page.press("o", Keys.HOME, Keys.ENTER)
    wait_for(lambda: page.find("after").is_displayed())
    page.press("]]")
    wait_for(lambda: "warmer" in page.text("warmer-out"))
    wait_for(lambda: page.find("undo").is_enabled())
    page.click("to-group")
    wait_for(lambda: "same correction" in page.text("said"))
    page.click("back")
    page.press("oo")
    assert page.find("order").get_attribute("value") == "group"
    page.press(Keys.HOME)
    groups = int(re.findall(r"(\d+) groups?", page.text("counts"))[0])
    for _ in range(groups):
        page.press("A")
        next_group(page)
    wait_for(lambda: f"{COUNT} right" in page.text("counts"))
    page.click("write")
    for box in page.browser.find_elements(By.CSS_SELECTOR, "#outputs input"):
        if box.get_attribute("value") in ("pp3", "darktable"):
            box.click()
    page.browser.find_element(By.CSS_SELECTOR, "[name=which][value=agreed]").click()
    wait_for(lambda: f"{2 * COUNT} new, 0 changed" in page.text("plan-text"), 120)
    wait_for(lambda: page.find("write-now").is_enabled())
    page.click("write-now")
    wait_for(lambda: f"{2 * COUNT} written" in page.text("plan-text"), 300)
    page.click("write-cancel")
    assert page.complaints() == [] or all("409" in line for line in page.complaints())


def next_group(page: Page) -> None:
    """Go right until another group is reached, as a person does with the arrow key."""
    name = page.text("group-name")
    for _ in range(COUNT):
        page.press(Keys.ARROW_RIGHT)
        if page.text("group-name") != name:
            return


def read_back(path: Path, name: str) -> Float64s:
    """The light that a sidecar takes out of a photograph."""
    output = BUILT_IN[name]
    assert output.form is not None
    light = output.form().read_illuminant(path.with_name(output.name(path)).read_bytes(), photo_of(path))
    assert light is not None
    return light


def photo_of(path: Path) -> Photo:
    return Photo.of(path, read_photograph(path))


def compare_programs(photographs: list[Path], home: Path) -> None:
    """What other programs show has the color of our picture, and had not without the sidecar."""
    photos = {path: photo_of(path) for path in photographs}
    lights = {path: read_back(path, "pp3") for path in photographs}

    def off(path: Path) -> float:
        as_shot = photos[path].as_shot
        return 0.0 if as_shot is None else float(angular_error(as_shot, lights[path]))

    programs: dict[str, Any] = {"rawtherapee-cli": develop_rawtherapee, "darktable-cli": develop_darktable}
    for path in sorted(photographs, key=off)[-SHOWN:]:
        photo, light = photos[path], lights[path]
        image = photo.reading.read(path).image
        ours = mean_chroma(develop(image, light, photo.srgb_matrix(light)))
        for program, show in programs.items():
            if not shutil.which(program):
                continue
            alone = path.parent.parent / program / path.name
            alone.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, alone)
            arguments = ("legacy",) if show is develop_darktable else ()
            apart = {}
            for what, place in (("with", path), ("without", alone)):
                out = show(SimpleNamespace(path=place), home, *arguments)
                apart[what] = float(np.linalg.norm(mean_chroma(tifffile.imread(out)) - ours))
                out.unlink()
            print(f"{path.name} {program}: {apart['with']:.3f} with the sidecar, {apart['without']:.3f} without")
            assert apart["with"] < 0.5 * apart["without"], (program, path, apart)


def mean_chroma(picture: Any) -> Float64s:
    """Red and blue over green, on average, of an encoded picture."""
    mean = np.asarray(picture, dtype=np.float64)[..., :3].reshape(-1, 3).mean(axis=0)
    return np.array([mean[0] / mean[1], mean[2] / mean[1]])
