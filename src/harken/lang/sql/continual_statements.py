"""Which statements are about continual queries: recognised by their first words.

sqlglot knows nothing of them, so their text is kept as it is written, for `continual` to read.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token

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
        case ["CREATE" | "CREAT", "CQ", *_] | ["CREAT", "CONTINUAL", "QUERY", *_]:
            return "THESIS"
        case ["CREATE", "CONTINUAL", "QUERY", _, "QUERY"] if words[5:6] == [":"]:
            return "THESIS"
        case ["QUERY", ":", *_]:
            return "THESIS"
        case ["ACTIVATE" | "DEACTIVATE" as verb, _, *_]:
            return verb
        case ["CREATE", "OR", "REPLACE", "CONTINUAL", "QUERY"]:
            return "CREATE"
        case ["CREATE", "CONTINUAL", "QUERY", *_]:
            return "CREATE"
        case ["SHOW" | "DESCRIBE" | "DESC", "CONTINUAL", "QUERIES" | "QUERY", *_]:
            return "SHOW"
        case [verb, "CONTINUAL", "QUERY", *_] if verb in VERBS:
            return "EXECUTE" if verb == "RUN" else verb
    return None


LABELS = frozenset(
    (
        *("QUERY", "TRIGGER", "STOP", "DELIVER", "NOTIFY", "ZONE", "OWNER", "STRATEGY"),
        *("PRIORITY", "DEADLINE", "COUPLING"),
    )
)


def goes_on(words: list[str]) -> bool:
    """Whether what follows a semicolon still belongs to a statement in the thesis's layout, whose
    clauses may end with semicolons; one is printed in the middle of a condition.

    >>> goes_on(["TRIGGER", ":", "EVERY"]), goes_on(["OR", "LOCATION"]), goes_on(["SELECT", "1"])
    (True, True, False)
    """
    if words[:1] in (["OR"], ["AND"]) or _is_label(words):
        return True
    return words[1:2] == [":"] and words[0] in LABELS


def _is_label(words: list[str]) -> bool:
    """`Stop;`, where the thesis prints a semicolon for the colon."""
    return len(words) == 1 and words[0] in LABELS


_WORD = re.compile(r"\w+|[^\w\s]")


def verb_of(text: str, explained: bool) -> str | None:
    """The verb of a statement about continual queries, from its text: what follows some first words
    is one token for sqlglot."""
    words = [found[0].upper() for found in islice(_WORD.finditer(text), 8)]
    if explained:
        return "EXPLAIN" if words[:2] == ["CONTINUAL", "QUERY"] else None
    return continual_verb(words)


def with_clauses(parts: list[list[Token]]) -> list[list[Token]]:
    """The words of each statement, where one in the thesis's layout has those between the
    semicolons that end its clauses."""
    found: list[list[Token]] = []
    follows_label = False
    for part in parts:
        before = found[-1] if found else []
        is_open = continual_verb([token.text.upper() for token in before[:6]]) == "THESIS"
        words = [token.text.upper() for token in part[:2]]
        if is_open and (follows_label or goes_on(words)):
            before += part
        else:
            found.append(part)
        follows_label = is_open and _is_label(words)
    return found
