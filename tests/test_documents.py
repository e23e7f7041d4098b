"""What the documents show works as it stands there, and what they say is true of the code.

Every block of console or Python in README.md, CONTRIBUTING.md and docs/ is run, page by page, in a folder of rendered
photographs and with a home of its own. A block under `<!-- not run: reason -->` is not; its commands and flags must
exist. A block under `<!-- file: NAME -->` is written to that file, one under `<!-- programs: NAME... -->` is run where
those are installed.
"""

from __future__ import annotations

import ast
import csv
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer
from test_layers import LAYERS

import c5
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, write_dng
from c5.evaluation.report import write_report
from c5.io.marks import cut_signature

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]

BLOCK = re.compile(r"(?:^<!-- ([a-z ]+): ([^>]+) -->\n)?^```([a-z]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE_BY_REPORT = "results.md"
"""Its commands come from the results; they took hours."""


class Block(NamedTuple):
    page: Path
    line: int
    mark: str | None  # "not run", "file" or "programs"
    value: str  # the reason, the name of the file, or those of the programs
    language: str
    text: str

    @property
    def runs(self) -> bool:
        is_code = self.language in ("console", "python")
        ready = self.mark == "programs" and all(map(shutil.which, self.value.split()))
        return is_code and (self.mark is None or ready) and self.page.name != MADE_BY_REPORT

    @property
    def commands(self) -> list[str]:
        """What follows the prompts of a console, with lines that go on put together."""
        return re.findall(r"^\$ ((?:.*\\\n)*.*)$", self.text, re.MULTILINE)

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"


def read_blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in BLOCK.finditer(text):
        mark, value, language, content = match.groups()
        yield Block(page, text.count("\n", 0, match.start()) + 1, mark, value or "", language, content)


BLOCKS = [block for page in PAGES for block in read_blocks(page)]
RUN = [page for page in PAGES if any(block.page == page and block.runs for block in BLOCKS)]


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    cameras = [VirtualCamera.random(rng) for _ in range(3)]
    names = ["query.dng", *(f"roll/{i:03d}.dng" for i in range(1, 4))]
    names += [f"{place}/{i}.dng" for place in ("Pictures/2025", "shoot", "timelapse") for i in range(4)]
    for index, (name, photo) in enumerate(zip(names, render_roll(cameras[0], len(names), rng, (64, 96)), strict=True)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        time = datetime(2025, 6, 1, 12) + timedelta(seconds=10 * index)
        write_dng(folder / name, photo, cameras[0], Layout(time=time))
    rows = []
    (folder / "mydata").mkdir()
    for camera in cameras[1:]:
        for i, photo in enumerate(render_roll(camera, 8, rng, (64, 96))):
            name = f"{camera.name.replace(' ', '-')}-{i}.dng"
            write_dng(folder / "mydata" / name, photo, camera)
            rows.append([name, camera.name, *photo.illuminant])
    with (folder / "mydata/manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "camera", "r", "g", "b"], *rows])
    return folder


@pytest.fixture
def place(photographs: Path, tmp_path: Path) -> Path:
    """A copy of the photographs to work in."""
    return Path(shutil.copytree(photographs, tmp_path / "work"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and `c5` and `python` those of this interpreter and this checkout."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, arguments in (("c5", "-m c5.cli"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "C5_"))}
    return kept | {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(c5.__file__).parents[1]),
        "CUDA_VISIBLE_DEVICES": "",
    }


@pytest.mark.parametrize("page", RUN, ids=[page.stem for page in RUN])
def test_every_example_runs(page: Path, place: Path, environment: dict[str, str]) -> None:
    for block in BLOCKS:
        if block.page != page:
            continue
        if block.mark == "file":
            (place / block.value).write_text(block.text)
        if not block.runs:
            continue
        program = ["bash", "-e", "-c", "\n".join(block.commands)]
        if block.language == "python":
            program = [sys.executable, "-W", "error::RuntimeWarning", "-c", block.text]
        done = subprocess.run(program, cwd=place, env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, f"{block}:\n{block.text}\n{done.stdout}\n{done.stderr}"


def test_every_example_that_is_not_run_says_why_and_names_what_exists() -> None:
    for block in BLOCKS:
        if block.mark is not None:
            assert block.mark in ("not run", "file", "programs"), block
        if block.runs or block.mark in ("file", "programs"):
            continue
        if block.language == "python":
            check_imports(block)
        for command in block.commands if block.language == "console" else ():
            check_command(block, shlex.split(command, comments=True))


def check_command(block: Block, words: list[str]) -> None:
    """Nothing is run: the command exists, its flags do, and their values will do."""
    program, *arguments = words
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), (str(block), words)
    elif program == "python":
        assert (ROOT / arguments[0]).is_file(), (str(block), words)
    elif program == "c5":
        parse(arguments, str(block))
    else:
        assert program in ("pip", "git", "cd"), (str(block), words)


def parse(arguments: list[str], where: str) -> None:
    command: Any = command_line()
    name = "c5"
    while hasattr(command, "commands") and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        assert name in command.commands, f"{where}: no command {name}"
        command = command.commands[name]
    if hasattr(command, "commands"):
        assert set(arguments) <= options(command), f"{where}: {arguments}"
    else:
        command.make_context(name, list(arguments))  # raises a UsageError on what it does not know


def command_line() -> Any:
    return typer.main.get_command(importlib.import_module("c5.cli.app").app)


def options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def check_imports(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("c5"):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), str(block)


def test_the_readme_is_read_in_three_minutes() -> None:
    readme = PAGES[0].read_text()
    assert len(readme.split()) <= 900
    assert readme.count("![") == 1
    assert readme.index("```python") < readme.index("pip install")


def test_every_command_and_every_shared_flag_is_listed() -> None:
    page = (DOCS / "commands.md").read_text()
    command = command_line()
    listed = re.findall(r"^\| `c5 (\w+)", page, re.MULTILINE)
    assert sorted(listed) == sorted(command.commands)
    everywhere = options(command)
    for one in command.commands.values():
        for each in (one, *getattr(one, "commands", {}).values()):
            everywhere |= options(each)
    table = page.split("## Shared flags")[1].split("## ")[0]
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", table):
        assert flag in everywhere, flag


def test_the_architecture_page_shows_the_tree_and_the_layers() -> None:
    page = (DOCS / "architecture.md").read_text()
    tree, layers = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    package = Path(c5.__file__).parent
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    packages = {f"{path.name}/" for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(re.findall(r"^  (\w+(?:\.py|/))", tree, re.MULTILINE)) == modules | packages
    assert [{name.strip() for name in layer.split(",")} for layer in layers.split("<")] == LAYERS


def test_links_lead_somewhere() -> None:
    for page in PAGES:  # Sphinx checks those between pages of the site, headings included
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), (page, link)


def test_the_results_document_is_what_the_command_makes_of_the_results() -> None:
    assert cut_signature((DOCS / MADE_BY_REPORT).read_bytes(), ".md").decode() == write_report(DOCS / "results")
    for path in (DOCS / "results").glob("*.json"):
        assert path.stat().st_size < 300_000, path


def test_experiments_are_dated_newest_first() -> None:
    headings = re.findall(r"^## (.*)$", (DOCS / "experiments.md").read_text(), re.MULTILINE)
    dates = [datetime.strptime(heading[:16], "%Y-%m-%d %H:%M") for heading in headings]
    assert dates == sorted(dates, reverse=True)


def test_the_model_card_is_that_of_the_bundled_model() -> None:
    card = (DOCS / "model-card.md").read_text()
    model = c5.load_model()
    size = (Path(c5.__file__).parent / "models/bundled.c5").stat().st_size
    assert f"| identity | `{model.identity}` |" in card
    assert f"| size | {size / 1e6:.2f} MB |" in card


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning is an error."""
    pytest.importorskip("sphinx")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    environment = os.environ | {"PYTHONPATH": str(Path(c5.__file__).parents[1])}
    doctrees = tmp_path_factory.mktemp("doctrees")
    done = subprocess.run(
        [*command, "-d", doctrees, DOCS, out], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def test_the_site_asks_nobody_else_for_anything(site: Path) -> None:
    pages = list(site.glob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]+src=\"([^\"]+)", page.read_text())
        loaded += re.findall(r"<link(?![^>]+canonical)[^>]+href=\"([^\"]+)", page.read_text())
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text()), style


def test_the_api_page_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text()
    for name in c5.__all__:
        assert f'id="c5.{name}"' in page, name
