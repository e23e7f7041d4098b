"""The pictures of shoots on the page for photographers: python tools/shoot_sheets.py docs/images"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from c5.colorimetry.temperature import show_kelvin
from c5.demo.shoots import SHOOTS, write_shoot
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.groups import Sets
from c5.photos.picture import Frame, encode_picture, make_sheet
from c5.photos.summary import show_pair
from c5.photos.taste import Taste

PHOTOGRAPHS, GROUPS, EACH, WIDTH = 48, 4, 2, 210
STRENGTH = 0.7
SEEDS = {"wedding": 21, "hike": 22, "concert": 23}


def main(folder: str) -> None:
    for name in SHOOTS:
        with TemporaryDirectory() as place:
            write_shoot(Path(place) / name, name, PHOTOGRAPHS, np.random.default_rng(SEEDS[name]))
            paths = sorted((Path(place) / name).glob("*.dng"))
            alone, together = (list(balance(paths, Settings(thumbnails=True, sets=sets))) for sets in (None, Sets()))
            pairs: dict[str, list[Frame]] = {}
            for one, other in zip(alone, together, strict=True):
                assert isinstance(one, Balance)
                assert isinstance(other, Balance)
                pairs.setdefault(str(other.group), []).append(draw(one, other))
        largest = sorted(sorted(pairs, key=lambda group: len(pairs[group]))[-GROUPS:], key=int)
        chosen = [np.linspace(0, len(pairs[group]) - 1, EACH).astype(int) for group in largest]
        frames = [pairs[group][place] for group, places in zip(largest, chosen, strict=True) for place in places]
        headings = ["as shot", "each alone", "as a set", f"the set at strength {STRENGTH}"]
        sheet = make_sheet(f"A {name}", headings, frames, columns=EACH, width=WIDTH)
        (Path(folder) / f"shoot-{name}.jpg").write_bytes(encode_picture(sheet, "sheet.jpg"))


def draw(alone: Balance, together: Balance) -> Frame:
    """As shot, balanced alone, balanced with its group, and with a part of the light's color kept."""
    before, one = show_pair(alone.photo, alone.illuminant)
    _, other = show_pair(together.photo, together.illuminant)
    kept = Taste(always={"strength": STRENGTH}).apply(together)
    _, warmer = show_pair(kept.photo, kept.illuminant)
    kelvins = [each.photo.temperature(each.illuminant) for each in (alone, together)]
    text = " and ".join("?" if each is None else f"{show_kelvin(each.kelvin)} K" for each in kelvins)
    return Frame((before, one, other, warmer), f"{together.photo.camera}, light {together.group}: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
