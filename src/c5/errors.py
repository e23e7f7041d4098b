"""Everything the library raises on purpose. `except c5.C5Error` catches all of it."""

from math import inf


class C5Error(Exception):
    """A problem the caller can act on; the message is one line that says what to do."""


class ParameterError(C5Error, ValueError):
    """An argument is outside its stated range."""


class ImageError(C5Error, ValueError):
    """The pixels cannot be used: wrong shape, type or range, or not a single one that counts."""


class ReadError(C5Error):
    """A file is missing, damaged, or of a kind that cannot be read."""


class NotLinearError(ReadError):
    """The file holds gamma-encoded pixels, in which light and surface are no longer a product."""


class WriteError(C5Error):
    """A result could not be written."""


class ModelFileError(C5Error):
    """A model file is damaged, foreign, or newer than this version of the package."""


class ProfileError(C5Error):
    """A camera profile is damaged, or does not belong to the model it is used with."""


class DataError(C5Error):
    """A dataset is incomplete or its files do not fit together."""


class DataWarning(UserWarning):
    """A dataset can be used, but may not hold what its owner thinks."""


class PluginError(C5Error):
    """Code of another package failed, or returned something that cannot be used."""


class WorkerError(C5Error):
    """A worker process or machine is gone, or cannot be used."""


def reason(error: Exception) -> str:
    """What an error says; a system error without its number and path."""
    return str(getattr(error, "strerror", None) or error)


def check_range(name: str, value: float, low: float, high: float = inf) -> None:
    """Raise an error that names the parameter if its value is out of range."""
    if not low <= value <= high:
        allowed = f"be {low:g} or more" if high == inf else f"lie between {low:g} and {high:g}"
        raise ParameterError(f"{name} must {allowed}, not {value:g}")
