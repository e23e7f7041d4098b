"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from c5.cli.app import app
from c5.demo import VirtualCamera, render_roll
from c5.demo.dng import write_dng
from c5.evaluation.report import write_report

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roll").mkdir()
    rng = np.random.default_rng(0)
    camera = VirtualCamera.random(rng)
    names = re.findall(r'"([\w/]+\.dng)"', example)
    assert len(names) == 4
    for name, photo in zip(names, render_roll(camera, 4, rng, (64, 96)), strict=True):
        write_dng(name, photo, camera)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("[") == 2


def test_every_command_is_listed() -> None:
    listed = set(re.findall(r"^\| `c5 (\w+)", README, re.MULTILINE))
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert listed == commands | {group.name for group in app.registered_groups}
    for name in listed:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


def test_every_file_of_the_tree_is_listed_and_every_link_leads_somewhere() -> None:
    root = Path(__file__).parents[1]
    tree = README.split("```text")[1].split("```")[0]
    for path in [*(root / "src/c5").glob("*.py"), *(root / "src/c5/training").glob("*.py")]:
        if path.name != "__init__.py":
            assert f" {path.name} " in tree, path
    for link in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (root / link).exists(), link


def test_the_results_document_is_what_the_command_makes_of_the_results() -> None:
    docs = Path(__file__).parents[1] / "docs"
    assert (docs / "results.md").read_text() == write_report(docs / "results")
    for path in (docs / "results").glob("*.json"):
        assert path.stat().st_size < 300_000, path
    for page in docs.glob("*.md"):
        for link in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (docs / link).exists(), (page, link)
