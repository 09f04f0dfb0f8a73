"""Which statements are about continual queries: recognised by their first words.

sqlglot knows nothing of them, so their text is kept as it is written, for `continual` to read.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

VERBS = ("ALTER", "DROP", "PAUSE", "RESUME", "MUTE", "UNMUTE", "SNOOZE", "EXECUTE", "RUN")
"""The words before CONTINUAL QUERY."""


class Continual(exp.Expression):
    """A statement about a continual query; `this` is its verb."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def verb(self) -> str:
        return str(self.args["this"])


def continual_verb(words: list[str]) -> str | None:
    """The verb of a statement, from its first words in capitals; None if it is about other things.

    >>> continual_verb(["CREATE", "OR", "REPLACE", "CONTINUAL", "QUERY", "BAYER", "AS"])
    'CREATE'
    >>> continual_verb(["SHOW", "CONTINUAL", "QUERIES"])
    'SHOW'
    """
    match words[:5]:
        case ["CREATE", "OR", "REPLACE", "CONTINUAL", "QUERY"]:
            return "CREATE"
        case ["CREATE", "CONTINUAL", "QUERY", *_]:
            return "CREATE"
        case ["SHOW" | "DESCRIBE" | "DESC", "CONTINUAL", "QUERIES" | "QUERY", *_]:
            return "SHOW"
        case [verb, "CONTINUAL", "QUERY", *_] if verb in VERBS:
            return "EXECUTE" if verb == "RUN" else verb
    return None
