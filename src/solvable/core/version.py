"""The version of the installed package."""

from __future__ import annotations


def installed_version() -> str:
    """The installed version, or "0+unknown" when the source is used without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("solvable")
    except PackageNotFoundError:
        return "0+unknown"
