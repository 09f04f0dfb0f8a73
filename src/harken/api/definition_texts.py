"""The statements that sources and domains stand for, as text: what a project writes down.

Law: running the text does what `db.source` or `db.domain` does with the same arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.api.domains import domain_words_of
from harken.api.sources import source_words
from harken.lang.sql.domain_statements import domain_text
from harken.lang.sql.source_statements import seconds_of, text_of


def source_statement(
    name: str,
    kind: str,
    options: Mapping[str, Any],
    *,
    key: Sequence[str] | None,
    capture: str | None,
    every: float | None,
    mirror: bool,
    in_lake: bool,
) -> str:
    words = source_words(
        name,
        kind,
        options,
        key=key,
        capture=capture,
        every=every,
        mirror=mirror,
        in_lake=in_lake,
        more={},
    )
    return text_of(words)


def domain_statement(
    name: str, members: Any, *, columns: Sequence[str] | None, skip_unavailable: bool
) -> str:
    return domain_text(
        domain_words_of(name, members, columns=columns, skip_unavailable=skip_unavailable)
    )


def length_of_time(text: str) -> float | None:
    """In seconds: `20 minutes`, `1.5`; None if it is none."""
    return seconds_of(text)
