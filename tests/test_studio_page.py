"""The studio's page in a real Chromium, driven as a person would drive it."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio_shoots import COUNT, digest_all, render, studio, wait_for

from c5.colorimetry.adaptation import DAYLIGHT
from c5.photos.picture import render as render_picture
from c5.photos.plane import tabulate_plane
from c5.photos.previews import CLIPPED, COUNTED, Preview
from c5.photos.taste import Look
from c5.studio.session import Session

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from c5.studio.planning import Plan  # noqa: E402
from c5.studio.server import listen, make_app  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and its driver are not installed")


@contextmanager
def chromium(profile: Path, width: int = 1280, height: int = 1700, *, scripts: bool = True) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def serving(session: Session) -> Iterator[str]:
    import uvicorn

    with listen() as listener:
        config = uvicorn.Config(make_app(session, "token"), log_level="error", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/token/"
        finally:
            server.should_exit = True
            thread.join()


class Page:
    """What a person can see and do."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser = browser
        browser.get(address)
        wait_for(lambda: self.tiles)

    @property
    def tiles(self) -> list[Any]:
        return list(self.browser.find_elements(By.CSS_SELECTOR, ".tile"))

    def find(self, id: str) -> Any:
        return self.browser.find_element(By.ID, id)

    def text(self, id: str) -> str:
        return str(self.browser.execute_script("return document.getElementById(arguments[0]).textContent", id))

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def click(self, id: str) -> None:
        self.find(id).click()

    def choose(self, name: str) -> str:
        """Go to the grid, click a photograph, and say its id."""
        if self.find("back").is_displayed():
            self.click("back")
        tile = self.browser.find_element(By.XPATH, f"//*[@class and contains(@aria-label, '{name},')]")
        tile.click()
        return str(tile.get_attribute("data-id"))

    def undo(self) -> None:
        ActionChains(self.browser).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()

    def run(self, code: str, *arguments: Any) -> Any:
        """What an asynchronous function of the page gives; its modules are at hand."""
        head = "const done = arguments[arguments.length - 1]; const given = [...arguments].slice(0, -1);"
        body = f"(async (given) => {{ {code} }})(given).then(done, (error) => done(String(error)));"
        return self.browser.execute_async_script(head + body, *arguments)

    def complaints(self) -> list[str]:
        lines = [line["message"] for line in self.browser.get_log("browser") if line["level"] == "SEVERE"]
        return [line for line in lines if "/measure " not in line]  # a patch that is too dark is refused


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = render(tmp_path_factory.mktemp("shoot") / "wedding")
    (folder / "broken.dng").write_bytes((folder / "0001.dng").read_bytes()[:3000])
    with studio(folder, tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(session: Session) -> Iterator[str]:
    with serving(session) as place:
        yield place


@pytest.fixture(scope="module")
def page(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        page = Page(browser, address)
        yield page
        assert page.complaints() == []


def rows(session: Session) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in session.tell()["photos"]}


def test_the_page_develops_what_the_library_develops(page: Page) -> None:
    """The same pixels, with clipped ones, with and without matrices, to a level."""
    rng = np.random.default_rng(3)
    rgb = (rng.uniform(0, 1, (60, 90, 3)) ** 2 * 65535).astype(np.uint16)
    flags = np.full((60, 90), COUNTED, np.uint8)
    flags[:10] |= CLIPPED
    rgb[:10] = np.where(rng.uniform(size=(10, 90, 1)) < 0.5, 65535, rgb[:10])
    flags[50:] &= ~np.uint8(COUNTED)
    preview = Preview(rgb, flags, (60, 90))
    matrix = np.array([[1.6, -0.5, -0.1], [-0.2, 1.5, -0.3], [0.0, -0.6, 1.6]])
    for light, colors in (([0.5, 0.7, 0.4], matrix), ([0.8, 0.6, 0.2], None), (None, None)):
        expected = render_picture(preview.linear, preview.counted, light, colors, preview.clipped)
        code = """
            const { Preview } = await import("./static/develop.js");
            const bytes = Uint8Array.from(atob(given[0]), (letter) => letter.charCodeAt(0));
            const image = new Preview(bytes.buffer).develop(given[1], given[2]);
            return [image.width, image.height, ...image.data];
        """
        packed = base64.b64encode(preview.encode()).decode()
        width, height, *data = page.run(code, packed, light, None if colors is None else colors.ravel().tolist())
        assert (height, width) == rgb.shape[:2]
        picture = np.array(data, np.uint8).reshape(height, width, 4)
        assert (picture[..., 3] == 255).all()
        difference = np.abs(picture[..., :3].astype(int) - expected)
        assert difference.max() <= 2
        assert difference.mean() < 0.1


def test_the_page_follows_sliders_as_the_library_does(page: Page, session: Session) -> None:
    entry = next(each for each in session.shoot.entries.values() if each.own is not None)
    assert entry.own is not None
    matrices = entry.own.photo.need_matrices()
    packed = base64.b64encode(tabulate_plane(matrices).encode()).decode()
    told = session.pictures.develop(entry.id)
    for strength, warmer, tint in ((1, 0, 0), (0.5, 0, 0), (1, 25, 0), (1, -40, 6), (0.8, 10, -12), (0, 0, 0)):
        expected = Look(strength, warmer=warmer, tint=tint).apply(np.array(told["light"]), matrices)
        code = """
            const { Plane } = await import("./static/develop.js");
            const bytes = Uint8Array.from(atob(given[0]), (letter) => letter.charCodeAt(0));
            const plane = new Plane(bytes.buffer, given[3]);
            return plane.follow(given[1].light, given[1].light_matrix, given[1].place, given[2]);
        """
        look = {"strength": strength, "warmer": warmer, "shift": tint}
        found = page.run(code, packed, told, look, DAYLIGHT._asdict())
        angle = np.degrees(np.arccos(np.dot(found["illuminant"], expected) / np.linalg.norm(found["illuminant"])))
        assert angle < 0.1
        matrix = entry.own.photo.srgb_matrix(expected)
        assert matrix is not None
        np.testing.assert_allclose(np.reshape(found["matrix"], (3, 3)), matrix, atol=0.02)


def test_the_grid_shows_the_shoot_and_what_is_wrong_with_it(page: Page) -> None:
    assert len(page.tiles) == COUNT + 1
    assert f"{COUNT + 1} photographs" in page.text("counts")
    assert "1 photograph cannot be read" in page.text("problems")
    labels = [tile.get_attribute("aria-label") for tile in page.tiles]
    assert sum("kelvin, tint" in label for label in labels) == COUNT
    assert sum("cannot be read" in label for label in labels) == 1
    shown = "return [...document.querySelectorAll('.tile img')].filter((each) => each.naturalWidth).length"
    wait_for(lambda: page.browser.execute_script(shown) == COUNT)
    unnamed = """
        return [...document.querySelectorAll("button, input, select, [role=slider], [role=img], [role=listbox]")]
          .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length
                              || each.getAttribute("aria-labelledby"))).map((each) => each.outerHTML)
    """
    assert page.browser.execute_script(unnamed) == []


def test_no_other_picture_stands_for_one_that_cannot_be_read(page: Page) -> None:
    drawn = "const mini = document.getElementById('mini'); return mini.dataset.drawn || ''"
    shows = "return mini.getContext('2d').getImageData(0, 0, mini.width, mini.height).data.some((level) => level > 0)"
    shown = page.choose("0003.dng")
    wait_for(lambda: page.browser.execute_script(drawn) == shown)
    page.choose("broken.dng")
    wait_for(lambda: page.browser.execute_script(drawn) == "")
    assert not page.browser.execute_script(shows)


def test_a_person_corrects_agrees_and_takes_back_with_keys_alone(page: Page, session: Session) -> None:
    id = page.choose("0002.dng")
    page.press(Keys.ENTER)
    canvas = page.find("after")
    wait_for(lambda: canvas.is_displayed() and canvas.get_attribute("data-drawn") == id)
    picture = "return document.getElementById('after').toDataURL()"
    before = page.browser.execute_script(picture)
    page.press("]]]")
    wait_for(lambda: page.browser.execute_script(picture) != before)
    wait_for(lambda: {row["id"]: row for row in rows(session).values()}[id]["warmer"] == 9)
    page.press("g")
    row = {row["id"]: row for row in rows(session).values()}[id]
    fellows = [each for each in rows(session).values() if each["group"] == row["group"]]
    wait_for(lambda: {each["warmer"] for each in rows(session).values() if each["group"] == row["group"]} == {9})
    assert len(fellows) > 1
    for _ in range(2):
        page.undo()
    wait_for(lambda: {each["warmer"] for each in rows(session).values()} == {0})
    page.press("b")
    assert page.find("before").is_displayed()
    page.press("b", "s")
    assert page.find("wipe").is_displayed()
    page.press("s", "h")
    wait_for(lambda: page.browser.find_elements(By.CSS_SELECTOR, "#why-picture img"))
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)
    assert page.find("grid").is_displayed()
    page.press("?")
    assert "pick a gray" in page.text("keys")
    page.press(Keys.ESCAPE)


def test_a_correction_keeps_the_place_among_the_doubtful(page: Page, session: Session) -> None:
    """The next photograph is the next doubtful one, though what is corrected counts as settled."""
    page.choose("0001.dng")
    page.press("o", Keys.HOME, Keys.ARROW_RIGHT, Keys.ENTER)  # broken.dng comes first
    wait_for(lambda: page.find("after").is_displayed())
    order = "return (await import('./static/store.js')).store.list.map((photo) => photo.name)"
    names = page.run(order)
    page.press("]")
    wait_for(lambda: rows(session)[names[1]]["warmer"] == 3)
    wait_for(lambda: page.find("undo").is_enabled())
    assert page.run(order) == names
    page.press(Keys.ARROW_RIGHT)
    assert page.text("name") == names[2]
    page.undo()
    wait_for(lambda: rows(session)[names[1]]["warmer"] == 0)
    page.press(Keys.ESCAPE, "oo")


def test_the_page_says_what_was_approved(page: Page, session: Session) -> None:
    page.choose("0001.dng")
    page.press("a")
    wait_for(lambda: page.text("said") == "0001.dng looks right")
    page.press("A")
    wait_for(lambda: page.text("said").endswith(" photographs look right"))
    for _ in range(2):
        page.undo()
    wait_for(lambda: not any(row["agreed"] for row in rows(session).values()))


def test_a_slider_is_followed_without_asking_anybody(page: Page) -> None:
    page.choose("0001.dng")
    page.press(Keys.ENTER)
    wait_for(lambda: page.find("after").is_displayed())
    wait_for(lambda: page.run("return (await (await import('./static/loupe.js')).loupe.picture)?.plane ? 1 : 0"))
    asked = "return performance.getEntriesByType('resource').filter((each) => !each.name.includes('shoot?')).length"
    before = page.browser.execute_script(asked)
    page.browser.execute_script("""
        performance.clearMeasures();
        const slider = document.getElementById("warmer");
        for (const value of [5, 10, 15]) {
          slider.value = value;
          slider.dispatchEvent(new Event("input"));
        }
    """)
    wait_for(lambda: page.browser.execute_script("return performance.getEntriesByName('slider').length"))
    assert "15 warmer" in page.text("warmer-out")
    assert page.browser.execute_script(asked) == before
    page.press(Keys.ESCAPE)


def test_a_slider_that_is_put_back_leaves_the_page_awake(page: Page, session: Session) -> None:
    page.choose("0001.dng")
    wait_for(lambda: page.find("warmer").is_enabled())
    slider = page.find("warmer")
    ActionChains(page.browser).move_to_element_with_offset(slider, 20, 0).click().perform()
    wait_for(lambda: rows(session)["0001.dng"]["warmer"] > 0)
    before = rows(session)["0001.dng"]
    drag = ActionChains(page.browser).move_to_element_with_offset(slider, 20, 0).click_and_hold()
    drag.move_by_offset(40, 0).move_by_offset(-40, 0).release().perform()
    row = rows(session)["0005.dng"]
    session.act({"do": "agree", "ids": [row["id"]], "agreed": True}, session.tell()["number"])
    label = f"return document.getElementById('photo-{row['id']}').getAttribute('aria-label')"
    wait_for(lambda: "agreed" in page.browser.execute_script(label))
    page.undo()
    wait_for(lambda: "agreed" not in page.browser.execute_script(label))
    assert rows(session)["0001.dng"] == before
    page.undo()
    wait_for(lambda: rows(session)["0001.dng"]["warmer"] == 0)


def test_a_gray_rectangle_and_names_of_groups(page: Page, session: Session) -> None:
    id = page.choose("0003.dng")
    page.press(Keys.ENTER)
    wait_for(lambda: page.find("after").is_displayed())
    page.press("p")
    assert page.find("patch").is_displayed()
    page.press(Keys.ARROW_LEFT * 3, "-", Keys.ENTER)
    wait_for(lambda: page.find("gray-box").is_displayed() or "gray card" in page.text("said"))
    if page.find("gray-box").is_displayed():
        page.click("gray-group")
        wait_for(lambda: {row["id"]: row for row in rows(session).values()}[id]["reference"])
        page.undo()
        wait_for(lambda: not any(row["reference"] for row in rows(session).values()))
    page.choose("0003.dng")
    page.press("m")
    page.find("name-text").send_keys("The church", Keys.ENTER)
    wait_for(lambda: "The church" in {row["group"] for row in rows(session).values()})
    titles = "return [...document.querySelectorAll('.group h3')].map((each) => each.textContent)"
    wait_for(lambda: "The church" in page.browser.execute_script(titles))
    page.press("j")
    wait_for(lambda: "The church" not in {row["group"] for row in rows(session).values()})


def test_photographs_are_dragged_to_another_group(page: Page, session: Session) -> None:
    shown = rows(session)
    id, target = page.choose("0012.dng"), shown["0001.dng"]
    assert shown["0012.dng"]["group"] != target["group"]
    code = """
        const [from, to] = given.map((id) => document.getElementById(`photo-${id}`));
        const dataTransfer = new DataTransfer();
        from.dispatchEvent(new DragEvent("dragstart", { bubbles: true, dataTransfer }));
        to.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer }));
        to.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    """
    page.run(code, id, target["id"])
    wait_for(lambda: rows(session)["0012.dng"]["group"] == target["group"])
    wait_for(lambda: "moved to" in page.text("said"))
    page.undo()
    wait_for(lambda: rows(session)["0012.dng"]["group"] == shown["0012.dng"]["group"])


def test_another_tab_sees_what_was_decided(page: Page, address: str, session: Session) -> None:
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    other = Page(page.browser, address)
    row = rows(session)["0006.dng"]
    session.act({"do": "agree", "ids": [row["id"]], "agreed": True}, session.tell()["number"])
    label = f"return document.getElementById('photo-{row['id']}').getAttribute('aria-label')"
    for handle in (page.browser.current_window_handle, first):
        page.browser.switch_to.window(handle)
        wait_for(lambda: "agreed" in page.browser.execute_script(label))
    page.browser.switch_to.window(other.browser.window_handles[-1])
    page.browser.close()
    page.browser.switch_to.window(first)


def test_what_will_be_written_is_shown_first(page: Page, session: Session) -> None:
    page.press("w")
    boxes = page.browser.find_elements(By.CSS_SELECTOR, "#outputs input")
    next(box for box in boxes if box.get_attribute("value") == "pp3").click()
    wait_for(lambda: f"{COUNT} new" in page.text("plan-text"))
    assert not [*session.folder.glob("*.pp3")]
    wait_for(lambda: page.find("write-now").is_enabled())
    page.click("write-now")
    wait_for(lambda: f"{COUNT} written" in page.text("plan-text"))
    assert len([*session.folder.glob("*.pp3")]) == COUNT
    page.click("write-cancel")


def test_only_the_last_choice_is_planned(page: Page, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Plan.make

    def make_slowly(plan: Plan, *arguments: Any) -> None:
        time.sleep(0.3)
        make(plan, *arguments)

    monkeypatch.setattr(Plan, "make", make_slowly)
    page.browser.execute_script("localStorage.clear()")
    page.press("w")
    names = ["darktable", "pp3", "pp3", "xmp", "pp3", "pp3"]
    click = """
        const ask = window.fetch; // what is asked first arrives last
        let late = 6;
        window.fetch = async (...question) => {
          if (`${question[0]}`.endsWith("plan")) await new Promise((go) => setTimeout(go, 400 * Math.max(--late, 0)));
          return ask(...question);
        };
        for (const name of arguments[0]) document.querySelector(`#outputs [value=${name}]`).click()
    """
    page.browser.execute_script(click, names)
    time.sleep(3)
    wait_for(lambda: f"{2 * COUNT} new" in page.text("plan-text"))
    wait_for(lambda: page.find("write-now").is_enabled())
    page.click("write-now")
    wait_for(lambda: f"{2 * COUNT} written" in page.text("plan-text"))
    time.sleep(1.5)
    assert f"{2 * COUNT} written" in page.text("plan-text")
    page.click("write-cancel")
    page.complaints()


@pytest.mark.parametrize("width", [1280, 2560])
def test_nothing_is_cut_off(page: Page, width: int) -> None:
    page.browser.set_window_size(width, 1000)
    too_wide = """
        return [...document.querySelectorAll(".bar *, #panel *, .loupe-bar *")].filter((each) => {
          const box = each.getBoundingClientRect();
          return box.width && (box.right > innerWidth + 1 || box.left < -1);
        }).map((each) => each.id || each.tagName)
    """
    assert page.browser.execute_script(too_wide) == []
    page.browser.set_window_size(1280, 1700)


def test_a_browser_without_scripts_is_told(address: str, tmp_path: Path) -> None:
    with chromium(tmp_path, scripts=False) as browser:
        browser.get(address)
        line = browser.find_element(By.ID, "needs-modules")
        assert line.is_displayed()
        assert "JavaScript modules" in line.text
        assert not browser.find_element(By.ID, "studio").is_displayed()


def test_the_page_says_when_the_program_has_stopped(tmp_path: Path) -> None:
    folder = render(tmp_path / "shoot", 4, (64, 96))
    before = digest_all(folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "c5.cli", "studio", str(folder), "--no-browser"],
        stdout=subprocess.PIPE, text=True, env=environment | {"HOME": str(tmp_path / "home")},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        with chromium(tmp_path / "profile") as browser:
            page = Page(browser, process.stdout.readline().strip())
            process.kill()
            wait_for(lambda: "The studio has stopped" in page.text("problems"))
            assert page.tiles
    finally:
        process.kill()
        process.wait()
    assert digest_all(folder) == before
