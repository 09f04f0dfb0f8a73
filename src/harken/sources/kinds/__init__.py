"""The kinds of outside sources: one module each, which holds the kind as `KIND`.

A new kind is a module that keeps the contract of `harken.sources.outside`, and a line in `MODULES`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from harken.packages import needs
from harken.sources.outside import OutsideKind

MODULES: dict[str, str] = {}
"""The module of each kind, by the name that follows USING."""


@cache
def outside_kind(name: str) -> OutsideKind:
    """Imported at first use, because drivers and parsers take time to load."""
    with needs("sources"):
        found: OutsideKind = import_module(MODULES[name]).KIND
    return found
