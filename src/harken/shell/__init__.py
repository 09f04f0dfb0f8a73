"""`harken shell`: reads statements and prints their results.

    sql> CREATE TABLE item (name STRING PRIMARY KEY, quantity INT);
    ok (3 ms)
    sql> BEGIN;
    ok (0 ms), transaction open
    sql*>

The star marks an open transaction. Law: a statement that fails undoes itself and nothing else, and
nothing that was typed or changed is lost at the end without a word.
"""

from __future__ import annotations

import sys

import harken
from harken.cli.program_texts import STDIN, decode
from harken.database.language_names import SQL
from harken.shell.display import Plain
from harken.shell.interactive import interact
from harken.shell.loop import Loop

__all__ = ["start"]


def start(db: harken.Database, language: str | None = None, path: str = ":memory:") -> int:
    """Read statements until the input ends, and return the exit code. At a terminal the language is
    that of the last session unless one is given; from a stream it is SQL."""
    if sys.stdin.isatty():
        interact(db, language, path)
        return 0
    loop = Loop(db, language or SQL, Plain())
    loop.read(decode(line, STDIN, number) for number, line in enumerate(sys.stdin.buffer))
    loop.finish()
    return 1 if loop.failed else 0
