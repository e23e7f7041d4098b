"""The c5 command."""

from __future__ import annotations

import sys
import warnings


def main() -> None:
    """Run the command. This module and its imports must not load NumPy: BLAS fixes its thread count when it loads."""
    from c5.cli.environment import prepare_environment

    prepare_environment()
    try:
        from c5.cli.console import complain

        warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
        from c5.cli.app import run

        run()
    except KeyboardInterrupt:  # while the command is still loading
        sys.exit(130)
