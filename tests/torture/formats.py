"""The kinds of files that are damaged: whole ones to begin with, and what a command does with such a file.

A use returns a digest of what the file was taken for, so that damage that is accepted with another meaning can be told
from damage that changed nothing. It raises a C5Error for a file that is refused.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from c5.errors import C5Error, ReadError
from c5.histograms import Grid
from torture.mutations import (
    BYTES,
    Mutation,
    change_cells,
    change_json,
    change_lines,
    change_npy,
    change_png,
    change_tags,
    change_xml,
    flip_bits,
    share_tiles,
)
from torture.structures import CONTAINER, MODEL, PROFILE, STATE, change_rows, pack_numbers, then_cut

Use = Callable[[Path], bytes]

GRID = Grid(16)
"""Small, so that counting takes no time."""
PIXELS = (48, 64)


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    file: str
    """The name that a case is written to."""
    make: Callable[[Path], Iterable[bytes]]
    """Whole files. What else a case needs beside it is put into the folder."""
    mutations: tuple[Mutation, ...]
    """Those that know the format; those of bytes are always tried too."""
    start: Callable[[Path], Use]
    """Load what is needed once; the folder is that of `make`."""
    sealed: bool = False
    """Whether a checksum covers all that matters: damage to bytes must be refused, or change nothing."""


def digest(*parts: Any) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape}".encode() + part.tobytes())
        else:
            found.update(part if isinstance(part, bytes) else repr(part).encode())
    return found.digest()


# Photographs ----------------------------------------------------------------------------------------------------------


def _pixels(seed: int) -> Any:
    from dng_files import numbers

    return numbers(seed, *PIXELS)


def make_dngs(_: Path) -> list[bytes]:
    """A DNG of each kind, and one as cameras lay out their own files."""
    from dng_files import after_preview, camera, tagged_dng

    from c5.demo.raw_files import XTRANS, Layout, encode_dng, mosaic

    layouts = [
        Layout(),
        Layout(lossless_jpeg=True),
        Layout(""),
        Layout(XTRANS),
        Layout("GRBG", border=(3, 4, 1, 2), matrices=1),
    ]
    made = [encode_dng(_pixels(i), camera(), layout) for i, layout in enumerate(layouts)]
    seen = mosaic(_pixels(9), "RGGB")
    made += [after_preview(seen), after_preview(seen, ">"), after_preview(seen, is_dng=False), tagged_dng(seen)]
    return [*made, *_real_files()]


def _real_files() -> list[bytes]:
    """Raw files of cameras, where C5_TEST_DATA has some."""
    from c5.io.raw import RAW_SUFFIXES

    folder = os.environ.get("C5_TEST_DATA")
    found = sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in RAW_SUFFIXES) if folder else []
    return [path.read_bytes() for path in found if path.stat().st_size < 8_000_000][:8]


def make_tiffs(_: Path) -> list[bytes]:
    import tifffile

    made = []
    settings: list[dict[str, Any]] = [
        {}, {"compression": "zlib", "predictor": True}, {"compression": "lzw", "tile": (16, 16)}, {"byteorder": ">"},
        {"bigtiff": True}, {"planarconfig": "separate"}, {"compression": "packbits", "rowsperstrip": 5},
    ]  # fmt: skip
    for i, each in enumerate(settings):
        buffer = io.BytesIO()
        pixels = _pixels(i)
        if "planarconfig" in each:
            pixels = np.moveaxis(pixels, 2, 0)
        tifffile.imwrite(buffer, pixels, photometric="rgb", metadata=None, software=False, **each)
        made.append(buffer.getvalue())
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer, (_pixels(8) / 65535).astype(np.float32), photometric="rgb", metadata=None, iccprofile=_profile()
    )
    return [*made, buffer.getvalue()]


def _profile() -> bytes:
    from PIL import ImageCms

    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def make_pngs(_: Path) -> list[bytes]:
    import imagecodecs

    whole = [
        bytes(imagecodecs.png_encode(_pixels(1))),
        bytes(imagecodecs.png_encode((_pixels(2) >> 8).astype(np.uint8))),
    ]
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray((_pixels(3) >> 8).astype(np.uint8)).save(buffer, "PNG", icc_profile=_profile())
    return [*whole, buffer.getvalue()]


def make_jpegs(_: Path) -> list[bytes]:
    from PIL import Image

    made = []
    for settings in ({}, {"progressive": True}, {"icc_profile": _profile()}):
        buffer = io.BytesIO()
        Image.fromarray((_pixels(3) >> 8).astype(np.uint8)).save(buffer, "JPEG", **settings)
        made.append(buffer.getvalue())
    return made


def make_npys(_: Path) -> list[bytes]:
    made = []
    for array in (
        _pixels(1),
        _pixels(2).astype(np.float32) / 65535,
        np.asfortranarray(_pixels(3)),
        (_pixels(4) >> 8).astype(np.uint8),
    ):
        buffer = io.BytesIO()
        np.save(buffer, array)
        made.append(buffer.getvalue())
    return made


def read_photographs(_: Path) -> Use:
    """What `c5 balance` and `c5 catalog add` do with a photograph, and `--dng` with a DNG."""
    from c5.io.raw import read_header
    from c5.photos.files import Failure
    from c5.photos.photo import Reading, read_photo
    from c5.photos.sidecars.dng import replace_neutral

    def use(path: Path) -> bytes:
        header = read_header(path)
        found = read_photo(path, GRID, Reading(), thumbnail=True)
        if isinstance(found, Failure) and "sRGB" in found.message:
            found = read_photo(path, GRID, Reading(assume_srgb=True), thumbnail=True)
        if isinstance(found, Failure):
            raise ReadError(found.message)
        assert found.histograms is not None
        assert np.isfinite(found.histograms.stack).all(), "histograms that are not finite"
        assert np.isfinite(found.gray_world).all(), "a gray world that is not finite"
        assert found.as_shot is None or np.isfinite(found.as_shot).all(), "a camera's balance that is not finite"
        found.temperature(np.array([0.5, 0.7, 0.5]))
        if header.is_raw:
            with suppress(C5Error):  # the copy may be refused where the photograph is not
                replace_neutral(path.read_bytes(), [0.5, 0.7, 0.5])
        return digest(found.histograms.stack, found.camera, found.time)

    return use


# Models and profiles --------------------------------------------------------------------------------------------------


def _networks() -> list[Any]:
    import torch

    from c5.training.config import NetworkConfig, RollKind
    from c5.training.network import build_network

    made = []
    for kind in (RollKind.PROFILE, RollKind.SEPARATE):
        torch.manual_seed(0)
        made.append(
            build_network(NetworkConfig(GRID, widths=(4, 8), n_images=3, kind=kind, gain=kind is RollKind.SEPARATE))
        )
    return made


def _histograms() -> list[Any]:
    from laws import textured

    from c5.histograms import histogram

    return [histogram(textured(seed), GRID) for seed in range(2)]


def make_models(folder: Path) -> list[bytes]:
    from c5.training.export import export_model

    made = []
    for network in _networks():
        export_model(
            network, folder / "model.c5", name="small", training={"cameras": ["a"]}, errors={"x": {"mean": 1.0}}
        )
        made.append((folder / "model.c5").read_bytes())
    return made


def use_models(_: Path) -> Use:
    """What `c5 estimate --model FILE` does."""
    from c5.model import load_model

    query, other = _histograms()

    def use(path: Path) -> bytes:
        model = load_model(path)
        if model.grid != GRID:
            raise ReadError("another grid")  # a valid file of another model; its histograms would have to be counted
        found = model.estimate_histogram(query, model.calibrate_histograms([other]))
        assert np.isfinite(found.illuminant).all(), "an illuminant that is not finite"
        assert found.uncertainty is None or np.isfinite(found.uncertainty), "an uncertainty that is not finite"
        return digest(found.illuminant, model.file.n_images, model.name)

    return use


def make_profiles(folder: Path) -> list[bytes]:
    from c5.model import load_model

    made = []
    for i, data in enumerate(make_models(folder)):
        (folder / f"model{i}.c5").write_bytes(data)
        load_model(folder / f"model{i}.c5").calibrate_histograms(_histograms(), "Camera").save(folder / "profile")
        made.append((folder / "profile").read_bytes())
    return made


def use_profiles(folder: Path) -> Use:
    """What `c5 estimate --profile FILE` does, with the model of the profile if it is one of two."""
    from c5.errors import ProfileError
    from c5.model import Profile, load_model

    models = [load_model(folder / f"model{i}.c5") for i in range(2)]
    query = _histograms()[0]

    def use(path: Path) -> bytes:
        profile = Profile.load(path)
        model = next((model for model in models if model.identity == profile.model), None)
        if model is None:
            raise ProfileError("of another model")
        found = model.estimate_histogram(query, profile)
        assert np.isfinite(found.illuminant).all(), "an illuminant that is not finite"
        json.dumps([profile.n_images, profile.camera])
        model.pool([profile, profile]) if model.file.kind == "profile" else None
        return digest(found.illuminant)

    return use


# Data -----------------------------------------------------------------------------------------------------------------


def _dataset(folder: Path) -> Path:
    """Six small images of two cameras with a manifest."""
    place = folder / "data"
    place.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    with (place / "manifest.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["path", "camera", "r", "g", "b", "dataset", "scene", "fold"])
        for i in range(6):
            np.save(place / f"{i}.npy", _pixels(i)[:24, :32])
            writer.writerow([f"{i}.npy", f"Camera {i % 2}", *rng.uniform(0.3, 1, 3).round(3), "set", f"s{i}", i // 2])
    return place


def make_manifests(folder: Path) -> list[bytes]:
    return [(_dataset(folder) / "manifest.csv").read_bytes()]


def use_manifests(folder: Path) -> Use:
    """What `c5 data check` does."""

    def use(path: Path) -> bytes:
        for image in (folder / "data").glob("*.npy"):
            if not (path.parent / image.name).exists():
                shutil.copy(image, path.parent)
        if not (path.parent / "pipe").exists():
            os.mkfifo(path.parent / "pipe")
        return _check_data(path.parent)

    return use


def _check_data(path: Path) -> bytes:
    from c5.datasets import examine
    from c5.datasets.inspection import find_duplicates, group_samples, inspect_images, make_notes

    found = examine(path)
    groups = group_samples(found.samples)
    problems = found.problems + find_duplicates(found.samples) + inspect_images(groups)
    notes = make_notes(groups)
    if problems:
        raise ReadError(problems[0].message[:300])
    return digest([(s.name, s.camera, s.illuminant.tolist(), s.fold) for s in found.samples], notes)


def make_packs(folder: Path) -> list[bytes]:
    from c5.datasets import read_samples, write_pack

    write_pack(read_samples(_dataset(folder)), folder / "data.c5data", overwrite=True)
    return [(folder / "data.c5data").read_bytes()]


def use_packs(_: Path) -> Use:
    """What `c5 data check` does with a pack, and what reads its images."""
    from c5.datasets import read_samples

    def use(path: Path) -> bytes:
        checked = _check_data(path)
        parts: list[Any] = []
        for sample in read_samples(path):
            image = sample.read()
            assert np.isfinite(image.rgb).all(), "pixels that are not finite"
            parts += [
                sample.name,
                sample.camera,
                sample.illuminant,
                image.rgb,
                image.mask,
                image.clipped,
                sample.pixels.digest(),
            ]
        return digest(checked, *parts)

    return use


def use_parts(folder: Path) -> Use:
    """What `c5 data pack` does with what a stopped writing left: the end must be the same."""
    from c5.datasets import read_samples, write_pack

    samples = read_samples(folder / "data")

    def use(path: Path) -> bytes:
        out = path.with_suffix("")
        out.unlink(missing_ok=True)
        try:
            write_pack(samples, out)
        finally:
            path.unlink(missing_ok=True)
        return digest(out.read_bytes())

    return use


def _features() -> list[Any]:
    from c5.datasets.features import EstimateFeature, HistogramFeature, PaletteFeature, VividnessFeature

    return [
        HistogramFeature(GRID),
        HistogramFeature(GRID, 1),
        PaletteFeature(GRID.powers),
        VividnessFeature(),
        EstimateFeature("gray-world"),
    ]


def make_sets(folder: Path) -> list[bytes]:
    from c5.datasets import read_samples
    from c5.datasets.prepared import write_prepared

    write_prepared(read_samples(_dataset(folder)), folder / "data.c5set", _features(), overwrite=True)
    return [(folder / "data.c5set").read_bytes()]


def use_sets(_: Path) -> Use:
    """What `c5 train` and `c5 evaluate` do with a prepared set."""
    from c5.datasets import read_samples
    from c5.datasets.prepared import load_feature

    features = _features()

    def use(path: Path) -> bytes:
        parts: list[Any] = []
        for sample in read_samples(path):
            parts += [sample.name, sample.camera, sample.illuminant, sample.pixels.digest()]
            for feature in features:
                found = load_feature(sample, feature)
                arrays = [np.asarray(each) for each in (found.stack,)] if hasattr(found, "stack") else []
                assert all(np.isfinite(array).all() for array in arrays), "histograms that are not finite"
                parts += [*arrays] or [repr(found)]
        return digest(*parts)

    return use


# Sidecars -------------------------------------------------------------------------------------------------------------


def _balance(folder: Path) -> Any:
    """A balance of a photograph, to be put into sidecars."""
    from dng_files import camera

    from c5.demo.raw_files import Layout, encode_dng
    from c5.photos.balancing import Balance
    from c5.photos.files import Failure
    from c5.photos.photo import read_photo
    from c5.photos.roll_building import Roll

    (folder / "photo.dng").write_bytes(encode_dng(_pixels(1), camera(), Layout()))
    photo = read_photo(folder / "photo.dng", GRID)
    assert not isinstance(photo, Failure)
    return Balance(photo, np.array([0.5, 0.7, 0.5]), 1.0, "model", Roll(photo.camera))


def _sidecar_writer(kind: str, folder: Path) -> Callable[[Path], object]:
    """What puts a balance into a sidecar, over one that a person set too."""
    from c5.photos import writing
    from c5.photos.outputs import load_output

    asked = {"overwrite": True, "replace_custom": True}
    known = inspect.signature(writing.write_output).parameters
    options: Any = {name: value for name, value in asked.items() if name in known}
    output, balance = load_output(kind), _balance(folder)
    return lambda path: writing.write_output(balance, output, path, **options)


def make_sidecars(kind: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        write = _sidecar_writer(kind, folder)
        path = folder / KINDS[kind].file
        path.unlink(missing_ok=True)
        write(path)
        own = path.read_bytes()
        path.write_bytes(FOREIGN[kind][0])
        write(path)
        return [own, path.read_bytes(), *FOREIGN[kind]]

    return make


def use_sidecars(kind: str) -> Callable[[Path], Use]:
    """What `c5 balance --xmp --overwrite` and its like do with a sidecar that exists."""

    def start(folder: Path) -> Use:
        write = _sidecar_writer(kind, folder)

        def use(path: Path) -> bytes:
            write(path)
            write(path)  # what was written can be read
            return b""

        return use

    return start


_RDF = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" {}</rdf:Description></rdf:RDF></x:xmpmeta>'
)
FOREIGN: dict[str, list[bytes]] = {
    "xmp": [
        _RDF.format(
            'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" xmp:Rating="4" crs:WhiteBalance="Custom" '
            'crs:Temperature="4000" crs:Tint="+3" crs:Exposure2012="+0.50">'
            "<dc:subject><rdf:Bag><rdf:li>tree</rdf:li></rdf:Bag></dc:subject>"
        ).encode()
    ],
    "darktable": [
        _RDF.format(
            'xmlns:darktable="http://darktable.sf.net/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="2" '
            'darktable:xmp_version="5" darktable:history_end="2" darktable:auto_presets_applied="1"><darktable:history>'
            '<rdf:Seq><rdf:li darktable:num="0" darktable:operation="exposure" darktable:enabled="1" '
            'darktable:modversion="6" darktable:params="00" darktable:multi_name="" '
            'darktable:multi_priority="0" darktable:blendop_version="11" '
            'darktable:blendop_params="gz12eJxjYGBgkGAAgRNODESDBnsIHll8ANNSGQM="/><rdf:li darktable:num="1" '
            'darktable:operation="temperature" darktable:enabled="1" darktable:modversion="3" '
            'darktable:params="000000400000803f0000c03f0000c07f"/></rdf:Seq></darktable:history>'
        ).encode()
    ],
    "pp3": [
        b"[Version]\nAppVersion=5.9\nVersion=349\n\n[General]\nRank=3\n\n[Exposure]\nCompensation=0.5\n\n"
        b"[White Balance]\nEnabled=true\nSetting=Camera\nTemperature=4200\nGreen=1.02\nEqual=1\n\n"
        b"[Crop]\nEnabled=false\n"
    ],
}
"""Sidecars as the programs write them, cut down."""

# Catalog ------------------------------------------------------------------------------------------------------------


def make_catalogs(folder: Path) -> list[bytes]:
    from dng_files import camera

    from c5.demo.raw_files import Layout, encode_dng
    from c5.model import load_model
    from c5.photos.catalog import Catalog

    place = folder / "photographs"
    place.mkdir(exist_ok=True)
    for i in range(4):
        (place / f"{i}.dng").write_bytes(encode_dng(_pixels(i), camera(), Layout()))
    (place / "bad.npy").write_bytes(b"\x93NUMPY\1\0v\0")
    for path in place.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    path = folder / "catalog.db"
    for each in folder.glob("catalog.db*"):
        each.unlink()
    with Catalog.open(path) as catalog:
        catalog.add([place], jobs=1)
        catalog.roll(load_model(), "Test Camera", 3)
    return [path.read_bytes()]


def use_catalogs(folder: Path) -> Use:
    """What `c5 catalog status`, `add` and `forget` do, and `c5 balance` with the catalog."""
    from c5.choices import SELECTIONS
    from c5.model import load_model
    from c5.photos.catalog import Catalog
    from c5.photos.photo import Reading

    model = load_model()
    photographs = sorted((folder / "photographs").iterdir())

    def use(path: Path) -> bytes:
        for beside in path.parent.glob(f"{path.name}-*"):  # a journal of the case before
            beside.unlink()
        refused: list[C5Error] = []
        with Catalog.open(path) as catalog:
            cameras = [each.camera for each in catalog.status()][:5]

            def balance() -> None:
                for photograph in photographs:
                    catalog.find_camera_and_time(photograph)
                    catalog.find(photograph, model.grid, Reading())

            steps: list[Callable[[], object]] = [catalog.failures, balance]
            for name in {*cameras, "Test Camera"} - {None}:
                selection = SELECTIONS[digest(path.read_bytes())[0] % 3]
                steps.append(partial(catalog.roll, model, str(name), 3, selection))
            steps += [
                lambda: catalog.add([folder / "photographs"], jobs=1),
                lambda: catalog.forget(folder / "photographs"),
            ]
            for step in steps:
                try:
                    step()
                except C5Error as error:
                    refused.append(error)
        if refused:
            raise refused[0]
        return b""

    return use


# Training -------------------------------------------------------------------------------------------------------------


def _trainer(folder: Path) -> Any:
    import torch

    from c5.datasets import read_samples
    from c5.datasets.prepared import prepare
    from c5.training.config import NetworkConfig, RealTraining
    from c5.training.data import load_training_data
    from c5.training.loop import Trainer
    from c5.training.run import features

    torch.set_num_threads(1)
    network = NetworkConfig(GRID, widths=(2, 4), n_images=3)
    config = RealTraining(
        networks=(network,), epochs=4, batch_sizes=(4,), shift_bins=2, crops=0, learning_rate=1e-3, average_decay=0.9
    )
    samples = prepare(read_samples(_dataset(folder)), features(config, []), folder=folder / "cache")
    return Trainer(config, load_training_data(samples, config), torch.device("cpu"))


def make_checkpoints(folder: Path) -> list[bytes]:
    from c5.training.run import save_checkpoint

    trainer, rows = _trainer(folder), []
    for epoch in trainer.run():
        rows.append({"epoch": epoch.number, "loss": f"{epoch.loss:.5f}"})
        if epoch.number == 2:
            break
    save_checkpoint(trainer, rows, folder)
    return [(folder / "checkpoint.pt").read_bytes()]


def use_checkpoints(folder: Path) -> Use:
    """What `c5 train --resume` does with a checkpoint."""
    import torch

    from c5.training.run import load_checkpoint

    trainer = _trainer(folder)

    def use(path: Path) -> bytes:
        rows = load_checkpoint(trainer, path.parent)
        found: list[Any] = [rows, [vars(epoch) for epoch in trainer.history]]

        def walk(value: Any) -> None:
            if isinstance(value, dict):
                for key, each in value.items():
                    found.append(key)
                    walk(each)
            elif isinstance(value, list | tuple):
                for each in value:
                    walk(each)
            else:
                found.append(value.detach().float().numpy() if isinstance(value, torch.Tensor) else value)

        walk(trainer.state())
        return digest(*found)

    return use


def make_runs(folder: Path) -> list[bytes]:
    from c5.choices import Recipe
    from c5.training.config import make_config
    from c5.training.run import TrainingPlan

    made = []
    for recipe in Recipe:
        TrainingPlan(make_config(recipe), [str(_dataset(folder))], []).save(folder)
        made.append((folder / "config.json").read_bytes())
    return made


def use_runs(_: Path) -> Use:
    """What `c5 train --resume` does with the plan of a run before it trains."""
    from c5.datasets import read_samples
    from c5.training.run import TrainingPlan, check_hold_out, features

    def use(path: Path) -> bytes:
        plan = TrainingPlan.load(path.parent)
        check_hold_out(plan.hold_out, read_samples(plan.data))
        return digest(features(plan.config, plan.hold_out))

    return use


def make_recipes(_: Path) -> list[bytes]:
    return [
        b'recipe = "plain"\nepochs = 3\nlearning_rate = 0.001\nseed = 1\nbatch_sizes = [8, 16]\n',
        b'recipe = "bundled"\nepochs = 2\n',
    ]


def use_recipes(_: Path) -> Use:
    from c5.training.config import read_config

    return lambda path: digest(read_config(path))


def make_matrices(_: Path) -> list[bytes]:
    from c5.colorimetry.matrices import COLUMNS
    from c5.demo import VirtualCamera

    rng = np.random.default_rng(0)
    rows = [["camera", *COLUMNS]]
    for i in range(3):
        camera = VirtualCamera.random(rng)
        both = [camera.color_matrix(kelvin).ravel() for kelvin in (2856, 6504)]
        rows.append([f"Camera {i}", *(f"{value:.5f}" for value in np.concatenate(both))])
    return ["\n".join(",".join(row) for row in rows).encode()]


def use_matrices(_: Path) -> Use:
    from c5.colorimetry.matrices import read_matrices

    return lambda path: digest(list(read_matrices(path)))


def make_results(folder: Path) -> list[bytes]:
    from c5.datasets import read_samples
    from c5.evaluation.evaluating import evaluate
    from c5.evaluation.methods import Rolls
    from c5.evaluation.plugin import find_methods
    from c5.evaluation.protocols import PROTOCOLS

    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    methods = find_methods("gray-world", Rolls())
    evaluate(PROTOCOLS["camera-specific"], read_samples(_dataset(folder)), methods, folder / "results")
    return [(folder / "results" / "results.json").read_bytes()]


def use_results(_: Path) -> Use:
    """What `c5 report` does, but for the plots."""
    from c5.choices import Format
    from c5.evaluation.report import format_results
    from c5.evaluation.results import Results

    def use(path: Path) -> bytes:
        results = Results.load(path)
        return digest(*[format_results(results, style) for style in Format])

    return use


def make_weights(_: Path) -> list[bytes]:
    """A small network under the names of the published weights, which C5_TEST_DATA has."""
    import torch

    from c5.training.config import NetworkConfig, RollKind
    from c5.training.network import build_network
    from c5.training.published import NAMES

    path = Path(os.environ.get("C5_TEST_DATA", "")) / "reference" / "C5_m_7_h_64.pth"
    if not path.is_file():
        return []
    names = {}
    for name in torch.load(path, map_location="cpu", weights_only=True):
        ours = name
        for pattern, replacement in NAMES:
            ours = re.sub(pattern, replacement, ours)
        names[ours] = name
    torch.manual_seed(0)
    network = build_network(NetworkConfig(Grid.published(64), kind=RollKind.SEPARATE, widths=(2, 2, 2, 2), n_images=2))
    buffer = io.BytesIO()
    torch.save({names[name]: tensor for name, tensor in network.state_dict().items()}, buffer)
    return [buffer.getvalue()]


def use_weights(_: Path) -> Use:
    from c5.training.published import read_published

    return lambda path: digest(*[each.numpy() for each in read_published(path).state_dict().values()])


KINDS: dict[str, Kind] = {
    "raw": Kind("case.dng", make_dngs, (change_tags, change_tags, change_tags, share_tiles), read_photographs),
    "tiff": Kind("case.tif", make_tiffs, (change_tags, change_tags, share_tiles), read_photographs),
    "png": Kind("case.png", make_pngs, (change_png, change_png), read_photographs),
    "jpeg": Kind("case.jpg", make_jpegs, (pack_numbers,), read_photographs),
    "npy": Kind("case.npy", make_npys, (change_npy, change_npy, change_npy), read_photographs),
    "model": Kind("case.c5", make_models, MODEL, use_models, sealed=True),
    "profile": Kind("case.c5profile", make_profiles, PROFILE, use_profiles, sealed=True),
    "pack": Kind("case.c5data", make_packs, CONTAINER, use_packs, sealed=True),
    "part": Kind("case.c5data.part", make_packs, tuple(map(then_cut, CONTAINER)), use_parts, sealed=True),
    "set": Kind("case.c5set", make_sets, CONTAINER, use_sets, sealed=True),
    "manifest": Kind("manifest.csv", make_manifests, (change_cells, change_cells, change_lines), use_manifests),
    "xmp": Kind("case.xmp", make_sidecars("xmp"), (change_xml, change_xml), use_sidecars("xmp")),
    "darktable": Kind("case.dng.xmp", make_sidecars("darktable"), (change_xml, change_xml), use_sidecars("darktable")),
    "pp3": Kind("case.dng.pp3", make_sidecars("pp3"), (change_lines,), use_sidecars("pp3")),
    "catalog": Kind("catalog.db", make_catalogs, (change_rows, change_rows, change_rows), use_catalogs),
    "checkpoint": Kind("checkpoint.pt", make_checkpoints, STATE, use_checkpoints, sealed=True),
    "run": Kind("config.json", make_runs, (change_json, change_json), use_runs),
    "recipe": Kind("recipe.toml", make_recipes, (change_lines,), use_recipes),
    "matrices": Kind("matrices.csv", make_matrices, (change_cells, change_lines), use_matrices),
    "results": Kind("results.json", make_results, (change_json, change_json), use_results),
    "weights": Kind("weights.pth", make_weights, STATE, use_weights),
}


def damage(kind: Kind, whole: list[bytes], rng: np.random.Generator) -> tuple[bytes, str, bool]:
    """A damaged file, what was done to it, and whether that was without knowing the format."""
    data = whole[int(rng.integers(len(whole)))]
    known = bool(kind.mutations) and rng.random() < 0.6
    choices = kind.mutations if known else BYTES
    mutation = choices[int(rng.integers(len(choices)))]
    try:
        return mutation(data, rng), getattr(mutation, "__name__", "mutation"), not known
    except Exception:  # a second change found what the first had left of it
        return flip_bits(data, rng), "flip_bits", True
