"""A short part of the campaign, the same every time, and that it sees what it looks for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from torture.batch import Batch, case_rng
from torture.campaign import Campaign, environment
from torture.corpus import CORPUS
from torture.formats import KINDS, Use, damage
from torture.mutations import BYTES
from torture.report import Part, to_markdown, total

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    "kind", ["raw", "tiff", "png", "npy", "pack", "part", "set", "manifest", "xmp", "darktable", "pp3", "matrices"]
)
def test_damaged_files_are_read_or_refused_in_one_line(kind: str, batches: Callable[[str], Batch]) -> None:
    batch = batches(kind)
    for number in range(25):
        outcome = batch.run(number)
        assert outcome.result in ("accepted", "refused"), f"make torture CASE={kind}/7/{number}: {outcome}"
        assert outcome.seconds < 10


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Batch]:
    """A batch of each kind, made once."""
    folder = tmp_path_factory.mktemp("batches")
    return cache(lambda kind: Batch(kind, 7, folder / "whole", folder / kind))


@pytest.mark.parametrize("name", CORPUS)
def test_what_was_found_once_is_not_found_again(name: str, batches: Callable[[str], Batch]) -> None:
    kind, make = CORPUS[name]
    batch = batches(kind)
    data = make(batch.whole[0])
    assert data != batch.whole[0]
    outcome = batch.attempt(0, data, "corpus", is_blind=name.startswith("one bit"))
    assert outcome.result in ("accepted", "refused"), outcome
    assert outcome.seconds < 20
    assert outcome.memory < batch.memory + 500_000_000


def test_a_killed_command_comes_to_the_same_end(tmp_path: Path) -> None:
    arguments = ["--seed", "7", "--minutes", "3", "--kills", "1", "--jobs", "1", "--only", "kill data pack"]
    done = subprocess.run(
        [sys.executable, "-m", "torture", *arguments, "--work", str(tmp_path)],
        env=environment(tmp_path) | {"C5_TEST_DATA": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| kill data pack |" in done.stdout


def test_a_case_is_the_same_every_time(tmp_path: Path) -> None:
    whole = [bytes(range(256)) * 8]
    made = [damage(KINDS["pp3"], whole, case_rng("pp3", 1, number))[0] for number in range(40)]
    assert made == [damage(KINDS["pp3"], whole, case_rng("pp3", 1, number))[0] for number in range(40)]
    assert len(set(made)) > 35
    for mutation in BYTES:
        for data in (b"", b"x", whole[0]):
            assert isinstance(mutation(data, np.random.default_rng(1)), bytes)


def test_what_must_not_happen_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(_: Path) -> Use:
        return lambda path: path.read_bytes()

    def broken(_: Path) -> Use:
        missing: dict[str, bytes] = {}
        return lambda path: missing[path.name]

    for start, wanted in ((careless, "changed"), (broken, "traceback")):
        monkeypatch.setitem(KINDS, "npy", replace(KINDS["npy"], start=start, sealed=start is careless))
        batch = Batch("npy", 1, tmp_path / "whole", tmp_path / "place")
        found = [batch.run(number) for number in range(40)]
        bad = next(outcome for outcome in found if outcome.result == wanted)
        bad = bad._replace(memory=0)  # what this process has is of all the tests before
        campaign = Campaign(1, tmp_path, ["npy"])
        campaign._note("npy", bad, tmp_path / "place")
        assert total([campaign.parts["npy"]]).bad == 1
        assert f"CASE='npy/1/{bad.number}'" in (campaign.findings / "findings.txt").read_text()
        assert (campaign.findings / f"npy-1-{bad.number}-case.npy").read_bytes() == batch.make(bad.number)[0]


def test_a_process_that_hangs_or_dies_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "torture" / "batch.py"
    script.parent.mkdir(parents=True)
    (script.parent / "__init__.py").touch()
    script.write_text(
        "import os, sys, json\n"
        "print(json.dumps('ready'), flush=True)\n"
        "first = int(sys.argv[3])\n"
        "for number in range(first, 4):\n"
        "    if number == 1: os.abort()\n"
        "    while number == 2: pass\n"
        "    print(json.dumps([number, 'refused', 0.0, 1000, '']), flush=True)\n"
    )
    monkeypatch.setattr("torture.campaign.environment", lambda _: {**os.environ, "PYTHONPATH": str(script.parents[1])})
    monkeypatch.setattr("torture.campaign.HANG_SECONDS", 1)
    monkeypatch.setattr("torture.campaign.TURN_CASES", 4)
    campaign = Campaign(1, tmp_path, ["npy"])
    campaign.run(1, cases=4, jobs=1)
    assert campaign.parts["npy"].results == {"refused": 2, "crash": 1, "hang": 1}


def test_the_table_adds_up() -> None:
    first, second = Part("a"), Part("b")
    for result in ("accepted", "refused", "traceback"):
        first.add(result, 1.0, 2_000_000)
    second.add("lost", 3.0)
    table = to_markdown([first, second], ["made so"]).splitlines()
    assert table[2] == "| a | 3 | 1 | 1 | 1 | 0 | 0 | 0 | 2 MB | 1.0 s |"
    assert table[4] == "| all | 4 | 1 | 1 | 1 | 0 | 0 | 1 | 2 MB | 3.0 s |"
    assert total([first, second]).bad == 2
