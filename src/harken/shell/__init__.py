"""`harken shell`: reads statements and prints their results.

    harken> create item instances :pen;
    harken*> select quantity(:pen);

The star marks an open transaction with uncommitted changes. Law: a statement that fails undoes
itself and nothing else, and uncommitted changes are rolled back at the end.
"""

from __future__ import annotations

import sys

import harken
from harken.cli.program_texts import STDIN, decode
from harken.shell.interactive import interact
from harken.shell.loop import Loop

__all__ = ["start"]


def start(db: harken.Database) -> int:
    """Read statements until the input ends, and return the exit code."""
    loop = Loop(db)
    if sys.stdin.isatty():
        interact(loop)
        loop.finish()
        return 0
    loop.read(decode(line, STDIN, number) for number, line in enumerate(sys.stdin.buffer))
    loop.finish()
    return 1 if loop.failed else 0
