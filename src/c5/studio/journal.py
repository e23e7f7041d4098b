"""What a person has decided about a shoot, kept event by event: a killed program loses nothing that it has answered.

A journal is a small SQLite file in the user's data folder, one per shoot, named by a digest of the folder's path.
Events are only ever added, even to undo. Only the program that has it open can write to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from c5.errors import DataError, ParameterError, ReadError, WriteError
from c5.io.files import data_folder
from c5.io.shapes import parse_json
from c5.studio.decisions import SHAPES, check_event

Event = dict[str, Any]


def journal_path(folder: Path) -> Path:
    """Where the journal of a folder of photographs is kept."""
    name = hashlib.blake2b(os.fsencode(os.path.realpath(folder)), digest_size=12).hexdigest()
    return data_folder() / "studio" / f"{name}.journal"


class Journal:
    """An open journal, for one thread at a time."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=0.5, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise WriteError(f"{path}: cannot be made: {error}; make room for your decisions there") from None
        try:
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("BEGIN EXCLUSIVE")
            self._connection.execute("CREATE TABLE IF NOT EXISTS event (number INTEGER PRIMARY KEY, content TEXT)")
            self._connection.execute("CREATE TABLE IF NOT EXISTS shoot (folder TEXT)")
            if self._connection.execute("SELECT 1 FROM shoot").fetchone() is None:
                self._connection.execute("INSERT INTO shoot VALUES (?)", (str(folder),))
            self._connection.execute("COMMIT")  # in this mode the lock stays
            rows = self._connection.execute("SELECT content FROM event ORDER BY number")
            self.events = [_parse(content) for (content,) in rows]
        except sqlite3.OperationalError as error:
            self._connection.close()
            if "locked" in str(error):
                raise ReadError(
                    f"{folder}: is open in another studio; continue there, or close that one first"
                ) from None
            raise WriteError(f"{path}: cannot be written: {error}; make room for your decisions there") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError, ParameterError, ReadError):
            self._connection.close()
            raise DataError(f"{path}: is damaged, or not a journal; move it away to start again") from None

    def add(self, event: Event) -> None:
        """Keep an event. When this returns, it is on disk; if it cannot be, nothing is kept."""
        try:
            self._connection.execute("INSERT INTO event (content) VALUES (?)", (json.dumps(event),))
        except sqlite3.Error as error:
            raise WriteError(f"{self.path}: what you decided cannot be kept: {error}; make room on that disk") from None
        self.events.append(event)

    def close(self) -> None:
        self._connection.close()


def _parse(content: object) -> Event:
    event: Event = parse_json(str(content), dict)
    check_event(event, SHAPES)
    return event
