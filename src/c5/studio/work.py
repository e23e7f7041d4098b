"""Something that takes a while, and how long it will still take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Work:
    """Something that takes a while."""

    what: str
    total: int
    done: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds; None while unknown."""
        taken = time.monotonic() - self.started
        return None if not self.done or taken < 0.5 else taken / self.done * (self.total - self.done)

    def follow(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def tell(self) -> dict[str, Any]:
        left = self.left
        return {
            "what": self.what,
            "done": self.done,
            "total": self.total,
            "left": None if left is None else round(left),
        }
