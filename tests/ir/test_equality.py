"""Nothing that changes the meaning of a term, a clause or a relation is left out of equality."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil

import harken.ir

PLACES = {"span"}
"""Where something stands in a text does not change what it means."""


def test_only_places_and_what_follows_from_other_fields_are_not_compared() -> None:
    wrong = []
    for module in pkgutil.iter_modules(harken.ir.__path__, "harken.ir."):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and dataclasses.is_dataclass(kind):
                wrong += [
                    f"{name}.{each.name}"
                    for each in dataclasses.fields(kind)
                    if not each.compare and each.init and each.name not in PLACES
                ]
    assert not wrong, wrong
