"""A pack gives back what was put in, to the last bit, and no accident goes unnoticed."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds, textured
from test_datasets import write_ffcc

from c5 import DataError, LinearImage
from c5.datasets import Capture, ImageFile, PackedImage, Sample, examine, read_samples, write_pack
from c5.datasets.container import START
from c5.errors import ReadError, WriteError
from c5.image import shrink


@dataclass(eq=False)
class Made:
    """Pixels in memory that count how often they are read."""

    image: LinearImage
    path: Path = Path("made")
    reads: int = 0
    broken: bool = False

    def read(self) -> LinearImage:
        self.reads += 1
        if self.broken:
            raise ReadError(f"{self.path}: damaged")
        return self.image

    def digest(self) -> str:
        return hashlib.sha256(self.image.rgb.tobytes()).hexdigest()


def make_samples(count: int, height: int = 6, width: int = 9) -> list[Sample]:
    samples = []
    for index in range(count):
        rgb = np.rint(textured(index, height, width) * 65535).astype(np.uint16)
        rgb[0, 0] = 65535
        mask = np.ones((height, width), np.bool_)
        mask[index % height, 1] = index % 2 == 0
        photographs = frozenset(f"set/A/{number}" for number in range(index // 3 * 3, 5))
        samples.append(
            Sample(
                Made(LinearImage(rgb, mask)),
                np.array([0.6, 0.64, 0.48]),
                camera="A" if index % 2 else "AB",
                dataset="set é",
                name=f"set/A/{index}",
                scene=f"scene {index}" if index % 3 else None,
                ccm=np.full((3, 3), index / 3) if index % 2 else None,
                capture=Capture(None, 2.8, index / 7) if index % 2 else None,
                fold=index % 3,
                sources=photographs if index % 4 else frozenset(),
                cameras=frozenset({"A", "AB", "C"}) if index % 4 else frozenset(),
            )
        )
    return samples


def assert_same(sample: Sample, original: Sample) -> None:
    for name in ("camera", "dataset", "name", "scene", "capture", "fold", "cameras", "sources", "made"):
        assert getattr(sample, name) == getattr(original, name)
    np.testing.assert_array_equal(sample.illuminant, original.illuminant)
    assert (sample.ccm is None) == (original.ccm is None)
    if sample.ccm is not None and original.ccm is not None:
        np.testing.assert_array_equal(sample.ccm, original.ccm)
    image, expected = sample.read(), original.read()
    for name in ("rgb", "mask", "clipped", "counts"):
        np.testing.assert_array_equal(getattr(image, name), getattr(expected, name))
    assert image.camera == expected.camera


@settings(max_examples=15)
@given(seed=seeds, count=st.integers(1, 5), height=st.integers(1, 40), width=st.integers(1, 40))
def test_sixteen_bits_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, height: int, width: int
) -> None:
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("pack")
    samples = []
    for index in range(count):
        pixels = rng.integers(0, 65536, (height, width, 3), dtype=np.uint16)
        pixels[rng.random((height, width)) < 0.2] = 65535
        pixels[rng.random((height, width)) < 0.2] = 0
        pixels[0, 0] = 1  # one that counts
        flags = rng.random((2, height, width)) < 0.3
        flags[:, 0, 0] = False
        image = LinearImage(pixels, ~flags[0], flags[1]) if index % 2 else LinearImage(pixels, ~flags[0])
        rgb = rng.uniform(0.1, 1, 3)
        samples.append(Sample(Made(image), rgb / np.linalg.norm(rgb), "A", "set", f"set/A/{index}"))
    write_pack(samples, folder / "x.c5data")
    for packed, original in zip(read_samples(folder / "x.c5data"), samples, strict=True):
        assert_same(packed, original)


def test_labels_come_back_and_sets_are_stored_once(tmp_path: Path) -> None:
    samples = make_samples(12)
    report = write_pack(samples, tmp_path / "x.c5data")
    assert report == (12, [])
    found = read_samples(tmp_path / "x.c5data")
    for packed, original in zip(found, samples, strict=True):
        assert_same(packed, original)
    # Equal sets are one object, and each name stands twice at most: in the record that is first to need it, and in the
    # index.
    assert found[1].cameras is found[2].cameras
    assert (tmp_path / "x.c5data").read_bytes().count(b'"set/A/4"') <= 2
    assert not (tmp_path / "x.c5data.part").exists()


def test_a_png_at_working_size_is_the_same_in_a_pack(tmp_path: Path) -> None:
    folder = write_ffcc(tmp_path / "set")
    pixels = np.rint(textured(0, 256, 384) * 1.5 * 65535).astype(np.uint16)
    pixels[30:50] = 65535
    pixels[60:90, :40] = 0
    (folder / "000001.png").write_bytes(imagecodecs.png_encode(pixels))
    write_pack(read_samples(folder), tmp_path / "x.c5data")
    for packed, original in zip(read_samples(tmp_path / "x.c5data"), read_samples(folder), strict=True):
        assert_same(packed, original)


def test_a_large_image_is_packed_at_working_size(tmp_path: Path) -> None:
    (sample,) = make_samples(1, 300, 500)
    write_pack([sample], tmp_path / "x.c5data")
    (packed,) = read_samples(tmp_path / "x.c5data")
    small = shrink(sample.read())
    image = packed.read()
    np.testing.assert_allclose(image.rgb, small.rgb, atol=0.51 / 65535)
    np.testing.assert_array_equal(image.counts, small.counts)
    # Packed again, nothing changes any more, not even the digest.
    write_pack([packed], tmp_path / "y.c5data")
    (again,) = read_samples(tmp_path / "y.c5data")
    assert_same(again, packed)
    assert again.pixels.digest() == packed.pixels.digest() != sample.pixels.digest()


def test_digests_need_no_pixels_and_tell_them_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = make_samples(4)
    same = LinearImage(samples[0].read().rgb, np.ones((6, 9), np.bool_) ^ (np.arange(9) == 5))
    samples.append(Sample(Made(same), samples[0].illuminant, "A", "set", "set/A/same pixels, another mask"))
    write_pack(samples, tmp_path / "x.c5data")
    monkeypatch.setattr(PackedImage, "read", None)
    digests = {sample.pixels.digest() for sample in read_samples(tmp_path / "x.c5data")}
    assert len(digests) == 5
    assert all(len(digest) == 64 for digest in digests)


def test_a_stopped_packing_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.c5data", tmp_path / "x.c5data"
    part = tmp_path / "x.c5data.part"
    write_pack(make_samples(5), whole)
    data = whole.read_bytes()
    ends = [s.pixels.entry["offset"] for s in read_samples(whole) if isinstance(s.pixels, PackedImage)][1:]
    for cut in [*range(0, len(data), 37), *ends, len(data)]:
        part.write_bytes(data[:cut])
        samples = make_samples(5)
        write_pack(samples, path, overwrite=True)
        assert path.read_bytes() == data
        # What was whole in the part is not read again.
        reads = [sample.pixels.reads for sample in samples if isinstance(sample.pixels, Made)]
        assert sum(reads) == 5 - sum(end <= cut for end in ends) - (cut >= data.rindex(b"indx"))


@given(seed=seeds)
def test_whatever_is_in_the_part_the_result_is_the_same(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("pack")
    samples = make_samples(6)
    # Other images, another order, other labels, and damage.
    earlier = [samples[index] for index in rng.permutation(6)[: rng.integers(1, 7)]]
    if rng.random() < 0.5:
        earlier = samples[: len(earlier)]
        earlier[-1] = Sample(earlier[-1].pixels, np.array([0, 0.6, 0.8]), "Z", "set", earlier[-1].name)
    write_pack(earlier, folder / "earlier.c5data")
    data = bytearray((folder / "earlier.c5data").read_bytes())
    if rng.random() < 0.5:
        data[rng.integers(START.size, len(data))] ^= 1 << rng.integers(8)
    (folder / "x.c5data.part").write_bytes(data)
    write_pack(samples, folder / "x.c5data")
    write_pack(samples, folder / "whole.c5data")
    assert (folder / "x.c5data").read_bytes() == (folder / "whole.c5data").read_bytes()


SLOW_PACKING = """
import sys, time
sys.path.insert(0, sys.argv[2])
from test_pack import Made, make_samples
from c5.datasets import write_pack

def slowly(self):
    time.sleep(0.05)
    return self.image

Made.read = slowly
write_pack(make_samples(200), sys.argv[1])
"""


def test_killed_it_loses_only_the_image_in_progress(tmp_path: Path) -> None:
    path, part = tmp_path / "x.c5data", tmp_path / "x.c5data.part"
    process = subprocess.Popen([sys.executable, "-c", SLOW_PACKING, str(path), str(Path(__file__).parent)])
    while process.poll() is None and not (part.exists() and part.stat().st_size > 5_000):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not path.exists()
    kept = part.stat().st_size
    samples = make_samples(40)
    report = write_pack(samples, path)
    assert report == (40, [])
    assert kept > 5_000
    assert sum(sample.pixels.reads for sample in samples if isinstance(sample.pixels, Made)) < 40
    write_pack(make_samples(40), tmp_path / "whole.c5data")
    assert path.read_bytes() == (tmp_path / "whole.c5data").read_bytes()


def test_images_that_cannot_be_used_are_named_and_left_out(tmp_path: Path) -> None:
    samples = make_samples(5)
    samples[1] = Sample(Made(samples[1].read(), Path("b.png"), broken=True), samples[1].illuminant, "A", "set", "b")
    black = LinearImage(np.zeros((4, 4, 3)), source="c.png")
    samples[3] = Sample(Made(black, Path("c.png")), samples[3].illuminant, "A", "set", "c")
    samples.append(samples[0])
    report = write_pack(samples, tmp_path / "x.c5data")
    assert report.written == 3
    assert [problem.message.split(":")[0] for problem in report.skipped] == ["b.png", "c.png", "made"]
    assert "no usable pixels" in report.skipped[1].message
    assert "set/A/0 appears twice" in report.skipped[2].message
    assert [sample.name for sample in read_samples(tmp_path / "x.c5data")] == ["set/A/0", "set/A/2", "set/A/4"]
    # Resumed, they are tried again, and what follows them is kept.
    shutil.copy(tmp_path / "x.c5data", tmp_path / "y.c5data.part")
    again = make_samples(5)
    again[1], again[3] = samples[1], samples[3]
    assert write_pack(again, tmp_path / "y.c5data").written == 3
    assert [sample.pixels.reads for sample in again[::2] if isinstance(sample.pixels, Made)] == [0, 0, 0]

    with pytest.raises(DataError, match=r"no image could be used; the first: b\.png"):
        write_pack([samples[1]], tmp_path / "z.c5data")
    assert not list(tmp_path.glob("z.c5data*"))


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "x.c5data"
    write_pack(make_samples(1), path)
    with pytest.raises(WriteError, match="exists already"):
        write_pack(make_samples(2), path)
    write_pack(read_samples(path), path, overwrite=True)  # even onto itself
    assert len(read_samples(path)) == 1
    (tmp_path / "y.c5data.part").write_text("somebody's own")
    with pytest.raises(WriteError, match="in the way"):
        write_pack(make_samples(1), tmp_path / "y.c5data")
    assert (tmp_path / "y.c5data.part").read_text() == "somebody's own"
    part, empty, new = (tmp_path / name for name in ("y.c5data.part", "empty", "new"))
    empty.touch()
    for disguise in (
        partial(part.symlink_to, empty),
        partial(part.hardlink_to, empty),
        partial(os.mkfifo, part),
        partial(part.symlink_to, new),
    ):
        part.unlink()
        disguise()
        with pytest.raises(WriteError, match="in the way"):
            write_pack(make_samples(1), tmp_path / "y.c5data")
        assert empty.read_bytes() == b""
        assert not new.exists()
    with pytest.raises(WriteError, match="cannot be written"):
        write_pack(make_samples(1), path / "inside" / "a.c5data")


def test_only_one_packing_writes_to_a_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def intrude(samples: Iterable[Sample]) -> Iterable[Sample]:
        with pytest.raises(WriteError, match="another process"):
            write_pack(make_samples(1), tmp_path / "x.c5data")
        yield from samples

    assert write_pack(make_samples(2), tmp_path / "x.c5data", intrude).written == 2


def read_all(path: Path) -> None:
    for sample in read_samples(path):
        sample.read()


def test_damage_anywhere_is_noticed_and_the_record_named(tmp_path: Path) -> None:
    path = tmp_path / "x.c5data"
    write_pack(make_samples(3), path)
    places = [sample.pixels for sample in read_samples(path)]
    data = path.read_bytes()
    for position in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(DataError) as caught:
            read_all(path)
        for number, place in enumerate(places, 1):
            assert isinstance(place, PackedImage)
            offset, length = place.entry["offset"], place.entry["length"]
            if offset <= position < offset + length:
                assert f"record {number} ({place.entry['name']}) is damaged" in str(caught.value)
    for length in range(0, len(data), 11):
        path.write_bytes(data[:length])
        with pytest.raises(DataError):
            read_all(path)


def test_foreign_unfinished_and_newer_files_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.c5data"
    write_pack(make_samples(2), path)
    data = path.read_bytes()
    foreign = tmp_path / "foreign.c5data"
    foreign.write_bytes(b"something else")
    with pytest.raises(DataError, match="no labeled images in a layout that is known"):
        read_samples(foreign)
    with pytest.raises(DataError, match="not a pack of images"):
        read_samples(foreign, "pack")
    (tmp_path / "x.c5data.part").write_bytes(data[:-40])
    with pytest.raises(DataError, match="let the command that writes it finish"):
        read_samples(tmp_path / "x.c5data.part")
    path.write_bytes(data[:8] + b"\x02\0\0\0" + data[12:])
    with pytest.raises(DataError, match=r"newer version.*pip install --upgrade"):
        read_samples(path)
    # A pack that is replaced after it was opened does not give other pixels under the old names.
    path.write_bytes(data)
    samples = read_samples(path)
    write_pack(list(reversed(make_samples(2))), path, overwrite=True)
    with pytest.raises(DataError, match="record 1"):
        samples[0].read()
    samples = read_samples(path)
    path.unlink()
    with pytest.raises(ReadError, match="check the path"):
        samples[0].read()


def test_opening_many_is_quick(tmp_path: Path) -> None:
    (one,) = make_samples(1)
    photographs = frozenset(f"set/A/{number}" for number in range(300))
    samples = [
        Sample(one.pixels, one.illuminant, "A", "set", f"set/A/{index}", sources=photographs) for index in range(3000)
    ]
    write_pack(samples, tmp_path / "x.c5data")
    start = time.perf_counter()
    found = read_samples(tmp_path / "x.c5data")
    assert time.perf_counter() - start < 1
    assert found[2999].sources == photographs
    assert (tmp_path / "x.c5data").stat().st_size < 3000 * 1500  # not 300 names a record


def test_real_images_come_back_exactly(test_data: Path, tmp_path: Path) -> None:
    samples = read_samples(test_data / "data" / "ffcc_sample")[::10]
    write_pack(samples, tmp_path / "x.c5data")
    for packed, original in zip(read_samples(tmp_path / "x.c5data"), samples, strict=True):
        assert_same(packed, original)
    source = sum(sample.path.stat().st_size for sample in samples if isinstance(sample.pixels, ImageFile))
    assert (tmp_path / "x.c5data").stat().st_size < 0.9 * source
    assert examine(tmp_path / "x.c5data").problems == []
