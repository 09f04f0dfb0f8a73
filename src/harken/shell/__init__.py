"""`harken shell`: statements as they are typed, results as they come.

    harken> create item instances :pen;
    harken*> select quantity(:pen);

The star is an open transaction: what was changed and not committed. Law: a statement that fails
undoes itself and nothing else, and what is not committed at the end is rolled back.
"""

from __future__ import annotations

import sys

import harken
from harken.cli.programs import STDIN, decode
from harken.shell.interactive import interact
from harken.shell.loop import Loop

__all__ = ["start"]


def start(db: harken.Database) -> int:
    """Read statements until the input ends; the exit code."""
    loop = Loop(db)
    if sys.stdin.isatty():
        interact(loop)
        loop.finish()
        return 0
    loop.read(decode(line, STDIN, number) for number, line in enumerate(sys.stdin.buffer))
    loop.finish()
    return 1 if loop.failed else 0
