"""Definitions that are changed together.

Each statement that defines something again compiles what depends on it. When several change, what
depends on one of them may be about to change as well: so what is broken in between is let be, and
the network of views stays as it was, until all have changed.

Law: afterwards everything compiles, or an error names what does not, and all of it is undone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from harken.database.dependency_order import dependents_in_order
from harken.database.runtime import Runtime
from harken.statements.dependents import recheck


@contextmanager
def together(runtime: Runtime) -> Iterator[None]:
    """Let what the block defines again be checked at its end. It stands inside of a transaction."""
    runtime.redefined = changed = set[str]()
    try:
        yield
    finally:
        runtime.redefined = None
    _recheck_all(runtime, changed)
    runtime.reactions.after_redefinition()


def _recheck_all(runtime: Runtime, names: Collection[str]) -> None:
    """What depends on one of them and is among them brings its own dependents along."""
    above = {
        name: {each.name for each in dependents_in_order(runtime.catalog, name)} for name in names
    }
    done: set[str] = set()
    for name in sorted(names, key=lambda name: (-len(above[name]), name)):
        if name not in done:
            recheck(runtime, name)
            done |= above[name]
