"""The files that are written for a photograph: which kinds there are, where they go, and how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from c5 import plugins
from c5.errors import C5Error, ParameterError, PluginError, ReadError, WriteError
from c5.io.files import write_file
from c5.photos.balancing import Balance
from c5.photos.files import OWN_PREVIEWS, Failure
from c5.photos.picture import encode_picture, render, turn
from c5.photos.sidecars import adobe, darktable, dng, rawtherapee

PREVIEW_PIXELS = 1_500_000

DNG_HELP = "Copies of DNG files with another AsShotNeutral, for a folder outside your library."


@dataclass(frozen=True)
class Output:
    """A kind of file that is written for a photograph."""

    help: str
    """One line that says what it is."""
    name: Callable[[Path], str]
    """The name of the file for a photograph of this path."""
    make: Callable[[Balance, bytes | None], bytes]
    """Its content. The second argument is what an existing file holds, where that is to be kept."""
    keeps: bool = False
    """Whether what else an existing file holds is kept."""
    copies: bool = False
    """Whether it is a copy of the photograph, which must not lie beside it."""


class Sidecar(Protocol):
    """What a module of `c5.photos.sidecars` has."""

    def path_beside(self, photo: Path, /) -> Path:
        """Where its program looks for the sidecar of a photograph."""

    def encode(self, balance: Balance, existing: bytes | None, /) -> bytes:
        """A sidecar with this balance; what else an existing one says is kept."""


def _sidecar(help: str, module: Sidecar) -> Output:
    return Output(help, lambda path: module.path_beside(path).name, module.encode, keeps=True)


def _preview(help: str, ending: str) -> Output:
    # No camera names its files so, and no later run takes them for photographs.
    return Output(help, lambda path: f"{path.name}{ending}", lambda balance, _: _draw_preview(balance, ending))


def _draw_preview(balance: Balance, ending: str) -> bytes:
    photo = balance.photo
    image = photo.reading.read(photo.path, PREVIEW_PIXELS).image
    matrix = photo.srgb_matrix(balance.illuminant)
    picture = render(image.rgb, image.mask, balance.illuminant, matrix, image.clipped)
    return encode_picture(turn(picture, photo.orientation), ending)


def _copy_dng(balance: Balance, _: bytes | None) -> bytes:
    return dng.replace_neutral(_read(balance.path), balance.illuminant)


BUILT_IN = {
    "preview": _preview("A rendered JPEG of each: NAME.c5.jpg.", OWN_PREVIEWS[0]),
    "png": _preview("A rendered PNG of each: NAME.c5.png.", OWN_PREVIEWS[1]),
    "xmp": _sidecar("Adobe sidecars: Lightroom, Camera Raw.", adobe),
    "pp3": _sidecar("RawTherapee profiles.", rawtherapee),
    "darktable": _sidecar("darktable sidecars.", darktable),
    "dng": Output(DNG_HELP, lambda path: f"{path.stem}.dng", _copy_dng, copies=True),
}
"""The kinds that come with the package. A new one is listed here, and nowhere else."""


def list_outputs() -> dict[str, str]:
    """What each kind of output is, by its name, those of other packages included. None of these is imported."""
    others = plugins.find(plugins.OUTPUTS, BUILT_IN)
    return {name: output.help for name, output in BUILT_IN.items()} | {
        name: f"Of the package {plugin.package}." for name, plugin in others.items()
    }


def load_output(name: str) -> Output:
    """A kind of output by its name."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    others = plugins.find(plugins.OUTPUTS, BUILT_IN)
    if name not in others:
        raise ParameterError(f"no output is called {name!r}; there are {', '.join([*BUILT_IN, *others])}")
    plugin = others[name]
    output = plugin.load()
    if not isinstance(output, Output):
        raise PluginError(f"{plugin} is no c5.photos.outputs.Output; ask its authors to make it one")

    def make(balance: Balance, existing: bytes | None) -> bytes:
        with plugins.guard(str(plugin)):
            return output.make(balance, existing)

    return replace(output, make=make)


class Plan(NamedTuple):
    """Where the outputs of a set go, before anything is written."""

    places: dict[tuple[Path, str], Path]
    """By photograph and name of the output."""
    refused: list[Failure]
    """What cannot be written anywhere."""


def plan_outputs(paths: Sequence[Path], wanted: dict[str, Output], folder: Path | None) -> Plan:
    """The places of all outputs, in a folder or beside each photograph.

    No output takes the place of a photograph of the set, and none that of another: both would be lost.
    """
    originals = {_identify(path) for path in paths}
    claims: dict[tuple[object, str], list[tuple[Path, str, Path]]] = {}
    for name, output in wanted.items():
        for path in paths:
            place = (folder or path.parent) / output.name(path)
            claims.setdefault(_identify(place), []).append((path, name, place))
    plan = Plan({}, [])
    for identity, rivals in claims.items():
        for path, name, place in rivals:
            if identity in originals:
                message = f"{path}: {place} is a photograph of this set; write to another folder"
                plan.refused.append(Failure(path, message))
            elif len(rivals) > 1:
                others = ", ".join(str(other) for other, kind, _ in rivals if (other, kind) != (path, name))
                message = f"{path}: {place} is wanted for {others} too; write each to a folder of its own"
                plan.refused.append(Failure(path, message))
            else:
                plan.places[path, name] = place
    return plan


def check_places(places: Iterable[Path], photographs: Iterable[Path]) -> None:
    """Raise a `WriteError` if a file for the whole set would take the place of one of its photographs."""
    originals = {_identify(path) for path in photographs}
    for place in places:
        if _identify(place) in originals:
            raise WriteError(f"{place}: is a photograph of this set; write to another folder")


def write_output(balance: Balance, output: Output, place: Path, *, overwrite: bool = False) -> Path:
    """Write one file for a photograph. What exists stays unless it may be overwritten; its other content is kept."""
    if os.path.exists(place) and not overwrite:
        raise WriteError(f"{place}: exists already; overwrite it, or write to another folder")
    try:
        source, existing = _find_existing(balance.path, output, place)
        try:
            content = output.make(balance, existing)
        except C5Error as error:
            blamed = source if isinstance(error, ReadError) and existing is not None else balance.path
            raise type(error)(Failure.of(blamed, error).message) from None
        return write_file(place, content)
    except OSError as error:
        raise WriteError(f"{place}: cannot be written: {error.strerror or error}") from error


def _find_existing(photo: Path, output: Output, place: Path) -> tuple[Path, bytes | None]:
    """What a file holds already: the one beside the photograph, where programs look, else the one replaced."""
    if output.keeps:
        for path in (photo.with_name(output.name(photo)), place):
            if os.path.exists(path):
                return path, _read(path)
    return place, None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error


def _identify(path: Path) -> tuple[object, str]:
    """The same for two paths that would be one file, also on a disk where case does not count."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        status = os.stat(folder)
    except OSError:  # it is still to be made
        return folder, name.casefold()
    return (status.st_dev, status.st_ino), name.casefold()
