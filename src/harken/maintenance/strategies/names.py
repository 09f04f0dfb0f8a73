"""The names of the strategies, short ones for programs and traces, and descriptions for people.

    >>> Strategy.TOTALS, Strategy.TOTALS.words
    ('totals', 'differentials that read kept totals')

A new strategy adds its own: `Strategy("mine", "found my way")`.
"""

from __future__ import annotations

from typing import ClassVar


class Strategy(str):
    words: str

    INCREMENTAL: ClassVar[Strategy]
    """Differentials, with nothing stored."""
    TOTALS: ClassVar[Strategy]
    """Differentials that read kept totals."""
    COUNTING: ClassVar[Strategy]
    """Differentials that count the derivations of each row."""
    EXTERNAL: ClassVar[Strategy]
    """Rederivation of a recursive relation, with nothing stored."""
    MATERIALIZED: ClassVar[Strategy]
    """Rederivation of a recursive relation whose rows are stored."""
    ROUNDS: ClassVar[Strategy]
    """Update the stored rounds of a recursion that counts derivations."""
    FOLLOWED: ClassVar[Strategy]
    """Update kept totals by the changes of their members."""
    NAIVE: ClassVar[Strategy]
    """Recompute both states in one statement, and compare."""
    COPIED: ClassVar[Strategy]
    """Recompute the rows, and compare them with a stored copy."""
    STORED: ClassVar[Strategy]
    """Recompute the rows, and compare them with those of the materialised view."""
    MOVED: ClassVar[Strategy]
    """Recompute a time-dependent view as of now and as of its last evaluation, and compare."""
    APART: ClassVar[Strategy]
    """Recompute one state after the other, because one statement for both is too long."""
    REDEFINED: ClassVar[Strategy]
    """Recompute a view that was redefined, and compare it with its stored rows."""
    EACH_STATE: ClassVar[Strategy]
    """Recompute one state after the other, because an expression failed between them."""
    EVENT: ClassVar[Strategy]
    """Find all rows that the events of a rule concern."""
    UNCHANGED: ClassVar[Strategy]
    """Nothing is computed, because nothing below has changed."""
    SKIPPED: ClassVar[Strategy]
    """The node is not computed, because everything above it is recomputed."""

    def __new__(cls, name: str, words: str) -> Strategy:
        made = super().__new__(cls, name)
        made.words = words
        return made


for _name, _words in {
    "incremental": "differentials",
    "totals": "differentials that read kept totals",
    "counting": "counted derivations",
    "external": "rederivation on demand, with nothing stored",
    "materialized": "rederivation with the rows stored",
    "rounds": "stored rounds are updated",
    "followed": "kept totals are updated by the changes of their members",
    "naive": "recomputed in both states and compared",
    "copied": "recomputed and compared with a stored copy",
    "stored": "recomputed and compared with the rows of the view",
    "moved": "recomputed as of now and as of the last evaluation",
    "apart": "recomputed separately in each state",
    "redefined": "recomputed and compared with the stored rows",
    "each-state": "recomputed separately in each state",
    "event": "all rows that the events concern",
    "unchanged": "not computed",
    "skipped": "skipped",
}.items():
    setattr(Strategy, _name.upper().replace("-", "_"), Strategy(_name, _words))

FROM_SCRATCH = frozenset(
    {Strategy.NAIVE, Strategy.COPIED, Strategy.STORED, Strategy.MOVED, Strategy.APART}
)
"""The strategies that evaluate the whole view from the stored relations."""
