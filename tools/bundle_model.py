"""Put a trained model into the package: python tools/bundle_model.py RUN/model.c5 EVALUATED/model.c5...

The first run trained on all cameras and gives the network. The others held cameras out and give the errors that the
same recipe makes on cameras it has not seen.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from c5.model_file import read_model, write_model

TARGET = Path(__file__).parents[1] / "src" / "c5" / "models" / "default.c5"


def main(trained: str, *evaluated: str) -> None:
    model = read_model(trained)
    errors: dict[str, object] = {}
    for path in evaluated:
        other = read_model(path)
        if other.training["config"] != model.training["config"]:
            raise SystemExit(f"{path}: another configuration than {trained}; its errors say nothing about it")
        errors |= other.errors
    write_model(TARGET, dataclasses.replace(model, name="default", errors=errors))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, errors for {', '.join(errors)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
