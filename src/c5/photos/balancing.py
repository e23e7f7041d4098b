"""White balance for a set of photographs: files in; results, or failures, out one by one as they are done.

for result in balance(paths, Settings(catalog=catalog)):
    if isinstance(result, Failure):
        print(result.message)
    else:
        print(result.path, result.illuminant, result.uncertainty)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from c5.choices import Fallback, Selection
from c5.color import Float64s, rgb_to_uv, uv_to_rgb
from c5.errors import C5Error, ParameterError, ReadError
from c5.histograms import Histograms
from c5.io.raw import read_header
from c5.model import Model, Profile, load_model
from c5.parallel import MOST_JOBS, in_parallel
from c5.photos.catalog import Catalog
from c5.photos.files import Failure
from c5.photos.groups import Sets, balance_sets
from c5.photos.photo import Photo, Reading, Thumbnail, read_photo
from c5.photos.roll_building import Origin, Roll, build_roll, order_by_content
from c5.photos.smoothing import Moment, smooth_in_turn
from c5.photos.taste import Taste
from c5.rolls import MOST_VIVID

UNCERTAIN_DEG = 2.5
"""Estimates with a higher uncertainty are marked: about a tenth of the photographs of a camera new to the model. Their
errors are twice those of the others."""

MOST_PREVIEWS = 28
"""At most this many photographs wait with the pixels of their previews, 20 MB each: a roll, and those read ahead. The
pixels of others are read again."""


@dataclass(frozen=True)
class Settings:
    """How a set of photographs is balanced."""

    model: Model = field(default_factory=load_model)
    profile: Profile | None = None
    """What is known of the camera of all photographs; without it, each camera's roll is looked up."""
    catalog: Catalog | None = None
    """Provides rolls, and the histograms of the photographs that it holds."""
    camera: str | None = None
    """The camera of files that do not name theirs."""
    selection: Selection = Selection.RANDOM
    """Which photographs of the catalog make a roll."""
    roll_size: int = MOST_VIVID
    smooth: bool = False
    """Whether to remove the flicker of bursts and time-lapses."""
    fallback: Fallback = Fallback.NONE
    taste: Taste = field(default_factory=Taste)
    """The looks to apply to photographs once their light is known."""
    reading: Reading = Reading()
    thumbnails: bool = False
    """Whether photographs come with thumbnails, for a contact sheet."""
    previews: bool = False
    """Whether photographs that are read come with the pixels of a preview, unless too many are waiting."""
    jobs: int | None = None
    """Files read at a time; by default one per core, up to four."""
    sets: Sets | None = None
    """Whether to group the photographs by light, with one balance per group."""

    def __post_init__(self) -> None:
        if self.roll_size < 1:
            raise ParameterError(f"a roll has at least 1 photograph, not {self.roll_size}")
        if self.smooth and self.sets is not None:
            raise ParameterError("a set has one balance per light, smoothing one per frame: ask for one of them")
        if self.profile is not None:
            self.model.check_profile(self.profile)


@dataclass(frozen=True, eq=False)
class Balance:
    """A photograph and the light that is taken out of it."""

    photo: Photo
    illuminant: Float64s
    """(3,) the light that is taken out."""
    uncertainty: float | None
    """In degrees: of the model's estimate, even if another light is used; in a set, of the group's light."""
    source: str
    """What the illuminant comes from: model, smoothed, set, reference, camera, gray-world, hand."""
    roll: Roll
    """What the model knew of the camera. All photographs of a camera share it."""
    covariance: Float64s | None = None
    """(2, 2) of u and v, as large as the 90 % bound of the model's estimate, even if another light is used."""
    light: Float64s | None = None
    """(3,) the actual light, where a look takes out another one."""
    look: str = ""
    """What a look did, or why it did nothing; empty if none was asked for."""
    spread: Float64s | None = None
    """(2, 2) covariance of the heat map in log-chroma; for a set."""
    group: str | None = None
    """The photographs of a set that share a light."""

    @property
    def path(self) -> Path:
        return self.photo.path

    @property
    def uncertain(self) -> bool:
        return (self.uncertainty or 0) > UNCERTAIN_DEG

    def fall_back(self, fallback: Fallback) -> tuple[Float64s, str] | None:
        """What to use if the estimate is uncertain, and its source; None if the estimate stays."""
        if not self.uncertain or fallback is Fallback.NONE:
            return None
        if fallback is Fallback.GRAY_WORLD:
            return self.photo.gray_world, "gray-world"
        return None if self.photo.as_shot is None else (self.photo.as_shot, "camera")

    def weigh(self, fallback: Fallback) -> tuple[Float64s, float]:
        """The estimate and the fallback as one light, and its uncertainty in degrees.

        The fallback counts like an estimate at the limit, `UNCERTAIN_DEG`.
        """
        degrees = self.uncertainty or UNCERTAIN_DEG
        other = self.fall_back(fallback)
        if other is None:
            return self.illuminant, degrees
        share = degrees**2 / (degrees**2 + UNCERTAIN_DEG**2)
        uv = (1 - share) * rgb_to_uv(self.illuminant) + share * rgb_to_uv(other[0])
        return uv_to_rgb(uv), UNCERTAIN_DEG * share**0.5


def balance(
    paths: Iterable[str | Path],
    settings: Settings | None = None,
    *,
    wanted: Collection[Path] | None = None,
    tell: Callable[[str], object] = str,
    follow: Callable[[str, int, int], object] = lambda what, done, total: None,
) -> Generator[Balance | Failure, None, None]:
    """The white balance of each photograph, in the order of `paths`, as soon as it is known.

    Files are read on a few threads, a few ahead of the one whose result is due. A photograph that the catalog holds
    is not opened. A camera that the catalog does not know gets its roll from the set itself: its files are recognized
    by their headers, some of them are read first, and none is read twice. Smoothing holds a photograph back until its
    sequence is complete, and takes the fallback into account. A set gives results once all of it is read.

    A `ReadError` says that a gray card cannot be used; there are no results then.

    With `wanted`, only these photographs have results; the others serve for rolls, sequences and groups. `tell`
    receives notes on the set as a whole, one line each. `follow` receives the progress before the first result of a
    set: the step, how much of it is done, and the total.
    """
    settings = settings or Settings()
    files = list(dict.fromkeys(Path(path) for path in paths))
    asked = set(files if wanted is None else wanted)
    if not asked and settings.sets is None:
        return
    # A set is held until all of it is read: without pixels, thousands fit into memory.
    whole = settings.smooth or settings.sets is not None
    first = settings if not whole else replace(settings, previews=False)
    if settings.sets is not None:
        first = replace(first, thumbnails=False)
    with ExitStack() as stack:
        loader = stack.enter_context(closing(_Loader(first, asked)))
        rolls = _Rolls(files, settings, loader)
        needed = files if whole else [path for path in files if path in asked]
        results: Iterable[Balance | Failure]
        known = ((photo, _find_roll(photo, rolls)) for photo in loader.take_all(needed))
        estimates = in_parallel(lambda each: estimate(*each, settings), known, settings.jobs)
        results = (result for _, result in stack.enter_context(closing(estimates)))
        if settings.sets is not None:
            held = []
            for result in results:
                held.append(result)
                follow("reading", len(held), len(files))
            results = _balance_sets(held, settings.sets, asked, settings, tell, partial(follow, "grouping"))
        else:
            if settings.smooth:
                results = smooth_in_turn(results, rolls.moments, settings.fallback)
            results = (result for result in results if result.path in asked)
        for result in results:
            if isinstance(result, Failure):
                yield result
            else:
                yield settings.taste.apply(apply_fallback(result, settings.fallback))


def _balance_sets(
    results: list[Balance | Failure],
    sets: Sets,
    asked: Collection[Path],
    settings: Settings,
    tell: Callable[[str], object],
    follow: Callable[[int, int], object],
) -> Iterator[Balance | Failure]:
    """The photographs of a set with their groups, in the same order; thumbnails are read now."""
    balances, failures = balance_sets(
        [result for result in results if isinstance(result, Balance)], sets, settings.fallback, tell, follow
    )
    cards = {reference.path for reference in sets.references}
    for failure in failures:
        if failure.path in cards:  # without its card, the group would be given another light
            raise ReadError(failure.message)
    grouped = {balance.path: balance for balance in balances}
    yield from failures
    due = (grouped.get(result.path, result) for result in results if result.path in asked)
    yield from (result for _, result in in_parallel(partial(_add_thumbnail, settings=settings), due, settings.jobs))


def _add_thumbnail(result: Balance | Failure, settings: Settings) -> Balance | Failure:
    if not settings.thumbnails or isinstance(result, Failure):
        return result
    try:
        image = result.photo.reading.read(result.path).image
    except C5Error as error:
        return Failure.of(result.path, error)
    return replace(result, photo=replace(result.photo, thumbnail=Thumbnail.of(image)))


def apply_fallback(balance: Balance, fallback: Fallback) -> Balance:
    """Use the fallback for a photograph in no sequence whose estimate is uncertain; any other balance stays."""
    other = balance.fall_back(fallback) if balance.source == "model" else None
    return balance if other is None else replace(balance, illuminant=other[0], source=other[1])


def _find_roll(photo: Photo | Failure, rolls: _Rolls) -> Roll | Failure:
    if isinstance(photo, Failure):
        return photo
    try:
        return rolls.find(photo.camera)
    except C5Error as error:
        return Failure.of(photo.path, error)


def estimate(photo: Photo | Failure, roll: Roll | Failure, settings: Settings) -> Balance | Failure:
    """The light of a photograph, given what is known of its camera."""
    if isinstance(photo, Failure):
        return photo
    if isinstance(roll, Failure):
        return roll
    assert photo.histograms is not None  # the loader's photographs have them
    try:
        found = settings.model.estimate_histogram(photo.histograms, roll.profile)
    except C5Error as error:
        return Failure.of(photo.path, error)
    known = replace(photo, histograms=None)
    bound, spread = found.bound_covariance, found.covariance  # a set needs the spread of the heat map
    return Balance(known, found.illuminant, found.uncertainty, "model", roll, bound, spread=spread)


class _Loader:
    """Provides photographs: from the catalog if it holds them, otherwise read on threads. None is read twice."""

    def __init__(self, settings: Settings, shown: Collection[Path]) -> None:
        self._settings = settings
        self._shown = shown
        self._jobs = settings.jobs or min(MOST_JOBS, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._jobs)
        self._started: dict[Path, Future[Photo | Failure]] = {}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def take_all(self, paths: Sequence[Path]) -> Iterator[Photo | Failure]:
        """Each photograph in turn, released when the next one is asked for. A few are read ahead."""
        for index, path in enumerate(paths):
            for soon in paths[index : index + 2 * self._jobs + 1]:
                self._start(soon)
            if not index:  # while the first are read
                with suppress(C5Error):  # every photograph will report it
                    self._settings.model.warm_up()
            yield self._started[path].result()
            del self._started[path]  # only now: the photograph may have been looked at for its own roll

    def look_at(self, paths: Sequence[Path]) -> Iterator[Photo | Failure]:
        """Some photographs before their turn. They are kept until it comes."""
        for path in paths:
            self._start(path)
        for path in paths:
            yield self._started[path].result()

    def _start(self, path: Path) -> None:
        if path not in self._started:
            settings = self._settings
            catalog = settings.catalog
            held = None if catalog is None else catalog.find(path, settings.model.grid, settings.reading)
            if held is not None and not settings.thumbnails:
                self._started[path] = Future()
                self._started[path].set_result(self._name_camera(held))
                return
            counted = None if held is None else held.histograms
            preview = settings.previews and path in self._shown and len(self._started) < MOST_PREVIEWS
            self._started[path] = self._pool.submit(self._read, path, counted, preview)

    def _read(self, path: Path, counted: Histograms | None, preview: bool) -> Photo | Failure:
        settings = self._settings
        grid, thumbnail = settings.model.grid, settings.thumbnails
        photo = read_photo(path, grid, settings.reading, histograms=counted, thumbnail=thumbnail, preview=preview)
        return photo if isinstance(photo, Failure) else self._name_camera(photo)

    def _name_camera(self, photo: Photo) -> Photo:
        camera = self._settings.camera
        return photo if photo.camera or camera is None else replace(photo, camera=camera)


class _Rolls:
    """What is known of each camera of a set, found when its first photograph asks for it."""

    def __init__(self, paths: list[Path], settings: Settings, loader: _Loader) -> None:
        self._paths = paths
        self._settings = settings
        self._loader = loader
        self._found: dict[str | None, Roll] = {}

    def find(self, camera: str | None) -> Roll:
        if camera not in self._found:
            self._found[camera] = self._make(camera)
        return self._found[camera]

    def _make(self, camera: str | None) -> Roll:
        """As given, from the catalog, or from the camera's photographs in the set itself."""
        settings = self._settings
        if settings.profile is not None:
            return Roll(camera, Origin.PROFILE, settings.profile)
        found = None if camera is None else self._ask_catalog(camera)
        if found is not None and found.profile is not None:
            return found
        own = order_by_content(path for path in self._paths if self.moments[path].camera == camera)
        made = build_roll(
            settings.model, own, self._loader.look_at, origin=Origin.SET, size=settings.roll_size, camera=camera
        )
        # Files that cannot be read fail in their turn.
        return replace(made, camera=camera, failures=() if found is None else found.failures)

    def _ask_catalog(self, camera: str) -> Roll | None:
        settings = self._settings
        if settings.catalog is None:
            return None
        try:
            return settings.catalog.roll(
                settings.model, camera, settings.roll_size, settings.selection, reading=settings.reading
            )
        except C5Error as error:
            failure = Failure(settings.catalog.path, f"{camera}: its roll cannot be used: {error}")
            return Roll(camera, failures=(failure,))

    @cached_property
    def moments(self) -> dict[Path, Moment]:
        """Camera and time of each file, from the catalog or from its header."""
        catalog = self._settings.catalog
        moments: dict[Path, Moment] = {}
        for path in self._paths:
            known = None if catalog is None else catalog.find_camera_and_time(path)
            if known is not None:
                moments[path] = Moment(known[0] or self._settings.camera, known[1])
        unknown = [path for path in self._paths if path not in moments]
        for path, header in in_parallel(read_header, unknown, self._settings.jobs):
            camera, time = (header.camera, header.time) if header.is_raw else (None, None)
            certain = not header.is_raw or time is not None  # LibRaw may find a time that the header lacks
            moments[path] = Moment(camera or self._settings.camera, time, certain)
        return moments
