"""Follow the steps of a Containerfile without a builder: in a folder, with its own Python environment.

python tools/follow_containerfile.py deploy/Containerfile FOLDER -- archive photographs -o result

FROM must name this version of Python; WORKDIR, COPY, ARG, ENV, RUN and ENTRYPOINT are done as by a builder, below the
folder; USER is ignored. The arguments after -- go to the entry point, which is run last.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path


def follow(containerfile: Path, folder: Path, arguments: list[str]) -> int:
    """Do every step; returns the exit code of the entry point."""
    root = containerfile.resolve().parents[1]
    venv.create(folder / "python", with_pip=True)
    environment = os.environ | {"PATH": f"{folder / 'python/bin'}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("VIRTUAL_ENV", None)
    here, variables, entry = folder, {}, []
    for step in read_steps(containerfile):
        what, _, rest = step.partition(" ")
        if what == "FROM":
            wanted = rest.partition(":")[2].partition("-")[0]
            found = ".".join(map(str, sys.version_info[:2]))
            if not rest.startswith("python:") or wanted != found:
                raise SystemExit(f"{containerfile}: is built on {rest}, this is Python {found}")
        elif what == "ARG":
            name, _, value = rest.partition("=")
            variables[name] = value
        elif what == "ENV":
            name, _, value = rest.partition("=")
            environment[name] = value
        elif what == "WORKDIR":
            here = folder / rest.lstrip("/")
            here.mkdir(parents=True)
        elif what == "COPY":
            *sources, target = shlex.split(rest)
            for source in sources:
                place = here / target if len(sources) == 1 and not target.endswith("/") else here / target / source
                (shutil.copytree if (root / source).is_dir() else shutil.copy)(root / source, place)
        elif what == "RUN":
            subprocess.run(["sh", "-ec", rest], cwd=here, env=environment | variables, check=True)
        elif what == "ENTRYPOINT":
            entry = json.loads(rest)
        elif what != "USER":
            raise SystemExit(f"{containerfile}: {what} is a step that is not known here")
    return subprocess.run([*entry, *arguments], env=environment, check=False).returncode


def read_steps(containerfile: Path) -> list[str]:
    """The steps, with continued lines joined and without comments."""
    text = "\n".join(line for line in containerfile.read_text().splitlines() if not line.startswith("#"))
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


if __name__ == "__main__":
    where = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    sys.exit(follow(Path(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[where + 1 :]))
