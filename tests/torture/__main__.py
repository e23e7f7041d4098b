"""`make torture`, or `python -m torture` with tests/ on the path."""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

from torture.campaign import Campaign, environment, killing, repeat
from torture.formats import KINDS
from torture.mishaps import MISHAPS, can_mount
from torture.report import commit, machine, to_markdown, total


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=None, help="another one every time by default; it is printed")
    parser.add_argument("--cases", type=int, default=None, help="end after so many damaged files, and")
    parser.add_argument("--kills", type=int, default=None, help="so many kills")
    parser.add_argument("--only", action="append", default=[], choices=[*KINDS, *MISHAPS], metavar="PART")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--case", metavar="PART/SEED/NUMBER", help="repeat one case alone")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "c5-torture")
    options = parser.parse_args()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"another campaign is at work in {work}; give --work FOLDER")
            return 1
        if options.case:
            os.environ.update(environment(work))
            repeat(options.case, work)
            return 0
        for name in ("whole", "findings"):
            shutil.rmtree(work / name, ignore_errors=True)
        return _run(options, work)


def _run(options: argparse.Namespace, work: Path) -> int:
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    settings = {"MINUTES": options.minutes, "SEED": seed, "CASES": options.cases, "KILLS": options.kills}
    typed = " ".join(f"{name}={value:g}" for name, value in settings.items() if value is not None)
    typed = f"make torture {typed}" if not options.only else f"python -m torture {shlex.join(sys.argv[1:])}"
    print(f"{typed}, commit {commit()}, in {work}", flush=True)
    began = time.monotonic()
    campaign = Campaign(seed, work, options.only)
    parts = campaign.run(options.minutes, options.cases, options.kills, options.jobs)
    passed = (time.monotonic() - began) / 60
    bad = total(parts).bad
    facts = [
        f"`{typed}` on {time.strftime('%d %B %Y', time.gmtime())}, commit {commit()}: {passed:.0f} minutes, "
        f"{options.jobs} at a time, {machine()}; "
        f"{campaign.count(KINDS):,} damaged files, {campaign.count(killing()):,} kills; full disks by "
        f"{'a small file system and by ' if can_mount() else ''}a limit on the size of files. "
        f"{f'{bad} cases did what must not happen.' if bad else 'Nothing happened that must not happen.'}"
    ]
    report = to_markdown([part for part in parts if part.cases], facts)
    (work / "report.md").write_text(report)
    print(f"\n{report}\n{work / 'report.md'}")
    if bad:
        print(f"Failing cases, and how to repeat each: {work / 'findings'}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
