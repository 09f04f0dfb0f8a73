"""The names of tables, indexes and triggers in SQLite, which ignores case.

A mark before each capital letter keeps `Edge` and `edge` apart.

Law: `plain_name(stored_name(n)) == n`, and no two names are the same to SQLite.
"""

from __future__ import annotations

import re

META = "harken_meta"
"""The table of `numbers.Numbers`; every database has it."""

_CAPITAL = re.compile(r"[A-Z^]")
_MARKED = re.compile(r"\^(.)", re.DOTALL)


def stored_name(name: str) -> str:
    """What SQLite calls it: `Edge` and `edge` are the same to SQLite, and not to us.

    >>> stored_name("edge()"), stored_name("insert Edge()")
    ('edge()', 'insert ^Edge()')
    """
    return _CAPITAL.sub(r"^\g<0>", name)


def plain_name(stored: str) -> str:
    """
    >>> plain_name("insert ^Edge()")
    'insert Edge()'
    """
    return _MARKED.sub(r"\1", stored)
