"""`c5 methods`: what can estimate."""

from __future__ import annotations

from c5.cli.console import console


def methods() -> None:
    """List the estimators, classical and from plugins, and the bundled models."""
    from c5.estimators import list_estimators
    from c5.model import model_names

    for estimator in list_estimators():
        origin = f" ({estimator.origin})" if estimator.takes_roll else ""
        console.print(f"{estimator.name:28}{estimator.description}{origin}")
    for name in model_names():
        console.print(f"{name:28}A bundled model.")
