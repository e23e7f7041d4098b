"""The pictures of the studio's page in the documents: python tools/studio_pages.py

A rendered wedding is opened in the studio, its groups are named, and Chromium shows the page 1280 and 2560 pixels wide.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from c5.demo.shoots import write_shoot
from c5.io.files import write_file

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COUNT, SIZE = 44, (1600, 2400)
LARGE = "0004.dng"
NAMES = {"0001.dng": "Getting ready", "0005.dng": "Church", "0018.dng": "Church", "0025.dng": "Garden"}
IS_READY = """
    return document.getElementById("mini").dataset.drawn
      && [...document.querySelectorAll(".tile img")].every((each) => each.naturalWidth)
      && !document.getElementById("progress").textContent
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoot", type=Path, help="a folder that holds the wedding already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        wedding = options.shoot or base / "wedding"
        if options.shoot is None:
            write_shoot(wedding, "wedding", COUNT, np.random.default_rng(15), SIZE)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
        command = [sys.executable, "-m", "c5.cli", "studio", str(wedding), "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept | {"HOME": str(base / "home")})
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            for width, height, ending in ((1280, 800, ""), (2560, 1440, "-2560")):
                take(address, base / f"profile{width}", width, height, ending)
        finally:
            process.terminate()
            process.wait()


def take(address: str, profile: Path, width: int, height: int, ending: str) -> None:
    """The grid and one photograph at one size of the window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", f"--window-size={width},{height}", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))
    try:
        browser.set_window_size(width, 2 * height - browser.execute_script("return innerHeight"))
        browser.get(address)
        wait(browser, IS_READY)
        for photograph, name in NAMES.items() if not ending else ():
            click(browser, photograph)
            ActionChains(browser).send_keys("m").perform()
            browser.find_element(By.ID, "name-text").send_keys(name, Keys.ENTER)
            wait(browser, f"return document.getElementById('group-name').textContent === '{name}'")
        if not ending:
            click(browser, "0003.dng")
            ActionChains(browser).send_keys("A").perform()
        time.sleep(8)
        ActionChains(browser).send_keys(Keys.HOME).perform()
        click(browser, LARGE)
        time.sleep(3)
        save(browser, f"studio-grid{ending}.jpg")
        click(browser, LARGE)
        ActionChains(browser).send_keys(Keys.ENTER).perform()
        wait(browser, "return !document.getElementById('after').hidden")
        ActionChains(browser).send_keys("s").perform()
        time.sleep(3)
        save(browser, f"studio-photo{ending}.jpg")
    finally:
        browser.quit()


def click(browser: Any, name: str) -> None:
    browser.find_element(By.XPATH, f"//*[contains(@class, 'tile') and contains(@aria-label, '{name},')]").click()


def wait(browser: Any, code: str) -> None:
    for _ in range(600):
        if browser.execute_script(code):
            return
        time.sleep(0.2)
    raise SystemExit(f"it takes too long: {code}")


def save(browser: Any, name: str) -> None:
    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.save(buffer, "JPEG", quality=80, optimize=True)
    print(write_file(IMAGES / name, buffer.getvalue()))


if __name__ == "__main__":
    main()
