"""Files of tensors, which torch reads. Nothing in them is executed, and what they claim to hold is checked first."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import torch

from c5.errors import ReadError
from c5.io.archives import open_archive, read_whole
from c5.io.readers import decoding, naming

MOST_BYTES = 2**30
MOST_TENSORS = 100_000

SEAL = b"c5 checkpoint 1\n"
"""What a sealed file begins with; then the SHA-256 of the rest, and the rest."""


DAMAGED = "damaged, or of an older version; remove it to start the run anew"


def seal(data: bytes) -> bytes:
    """The same with a checksum before it."""
    return SEAL + hashlib.sha256(data).digest() + data


def unseal(data: bytes) -> bytes:
    """What was sealed; ReadError if a single bit of it has changed."""
    start = len(SEAL) + hashlib.sha256().digest_size
    rest = data[start:]
    if not data.startswith(SEAL) or hashlib.sha256(rest).digest() != data[len(SEAL) : start]:
        raise ReadError("its checksum does not fit")
    return rest


def read_file(path: Path) -> bytes:
    """The bytes of a file of tensors. Errors do not name it."""
    try:
        return read_whole(path, MOST_BYTES)
    except FileNotFoundError:
        raise ReadError("no such file; check the path") from None
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}; check the path") from None


def load_tensors(data: bytes, device: torch.device | str) -> Any:
    """What `torch.save` has saved, if it is nothing but tensors, numbers and text."""
    if data.startswith(b"PK"):
        open_archive(data, len(data), MOST_TENSORS)  # nothing is compressed in such a file
    with decoding("save it again"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(io.BytesIO(data), map_location=device, weights_only=True)


def load_weights(network: torch.nn.Module, weights: Any) -> None:
    """Put weights into a network; a ReadError if they are those of another one."""
    if not isinstance(weights, dict):
        raise ReadError("no weights")
    with decoding("use those of the same network"):
        network.load_state_dict(weights)


def read_checkpoint(path: Path, device: torch.device | str) -> Any:
    """What a checkpoint holds."""
    with naming(path):
        data = read_file(path)
        try:
            return load_tensors(unseal(data), device)
        except ReadError as error:
            raise ReadError(DAMAGED) from error
