"""The kinds of files that are written for a photograph. Listing them imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c5 import plugins
from c5.errors import ParameterError, PluginError

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.sidecars.marks import Form

OWN_PREVIEWS = (".c5.jpg", ".c5.png")
"""The endings of pictures that c5 makes of photographs. They are not photographs."""

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
    """Whether the other content of an existing file is kept."""
    copies: bool = False
    """Whether it is a copy of the photograph, which must not lie beside it."""
    note: Callable[[Balance], str] = lambda _: ""
    """What its program cannot hold of a balance, in one line; empty if it holds all of it."""
    caveat: Callable[[Path], str] = lambda _: ""
    """Why its program will not read the file for a photograph of this path, in one line; empty if it will."""
    draws: bool = False
    """Whether it is drawn from the pixels of a preview."""
    form: Callable[[], Form] | None = None
    """The format of a sidecar in which c5 marks what it writes, so that it can be undone."""


def _sidecar(help: str, program: str, caveat: Callable[[Path], str] = lambda _: "") -> Output:
    """The sidecar of a program, made by the module of `c5.photos.sidecars` with its name."""

    def module() -> Any:
        return import_module(f"c5.photos.sidecars.{program}")

    return Output(
        help,
        lambda path: str(module().path_beside(path).name),
        lambda balance, existing: bytes(module().encode(balance, existing)),
        keeps=True,
        note=lambda balance: str(module().note(balance)),
        caveat=caveat,
        form=module,
    )


def _caveat_adobe(path: Path) -> str:
    from c5.photos.sidecars import adobe

    return adobe.caveat(path)


def _preview(help: str, ending: str) -> Output:
    # No camera names its files like this, and no later run takes them for photographs.
    return Output(
        help, lambda path: f"{path.name}{ending}", lambda balance, _: _draw_preview(balance, ending), draws=True
    )


def _draw_preview(balance: Balance, ending: str) -> bytes:
    from c5.photos.picture import encode_picture, render, turn

    photo = balance.photo
    image = photo.preview or photo.reading.read_preview(photo.path)[0]
    matrix = photo.srgb_matrix(balance.illuminant)
    picture = render(image.rgb, image.mask, balance.illuminant, matrix, image.clipped)
    return encode_picture(turn(picture, photo.orientation), ending)


def _copy_dng(balance: Balance, _: bytes | None) -> bytes:
    from c5.io.files import read_bytes
    from c5.io.marks import cut_signature
    from c5.photos.sidecars.dng import replace_neutral

    return replace_neutral(cut_signature(read_bytes(balance.path)), balance.illuminant)


def _name_dng(path: Path) -> str:
    return path.name if path.suffix.lower() == ".dng" else f"{path.stem}.dng"


def _note_dng(balance: Balance) -> str:
    from c5.photos.sidecars import adobe, rawtherapee

    return "; ".join(note for note in (adobe.note(balance), rawtherapee.note(balance, is_copy=True)) if note)


BUILT_IN = {
    "preview": _preview("A rendered JPEG of each: NAME.c5.jpg.", OWN_PREVIEWS[0]),
    "png": _preview("A rendered PNG of each: NAME.c5.png.", OWN_PREVIEWS[1]),
    "xmp": _sidecar("Adobe sidecars: Lightroom, Camera Raw.", "adobe", _caveat_adobe),
    "pp3": _sidecar("RawTherapee profiles.", "rawtherapee"),
    "darktable": _sidecar("darktable sidecars.", "darktable"),
    "dng": Output(DNG_HELP, _name_dng, _copy_dng, copies=True, note=_note_dng),
}
"""The kinds that come with the package. A new one is listed here, and nowhere else."""


def list_outputs(taken: Collection[str] = ()) -> dict[str, str]:
    """What each kind of output is, by name, including those of other packages, which are not imported.

    Other packages cannot have names that are `taken`.
    """
    others = plugins.find(plugins.OUTPUTS, {*BUILT_IN, *taken})
    return {name: output.help for name, output in BUILT_IN.items()} | {
        name: f"From the package {plugin.package}." for name, plugin in others.items()
    }


def find_caveats(outputs: Iterable[tuple[Output, Path]]) -> list[str]:
    """The caveats of outputs for photographs, each once."""
    return [caveat for caveat in dict.fromkeys(output.caveat(path) for output, path in outputs) if caveat]


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
        raise PluginError(f"{plugin} is not a c5.photos.outputs.Output; ask its authors to make it one")

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            with plugins.guard(str(plugin)):
                return function(*arguments)

        return call

    return replace(output, make=guarded(output.make), note=guarded(output.note), caveat=guarded(output.caveat))
