"""The c5 command."""

from c5.cli.main import app, main

__all__ = ["app", "main"]
