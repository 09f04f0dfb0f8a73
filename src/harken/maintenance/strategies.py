"""The strategies by which the change of a node is found. All of them obey the same law: the change
is the difference between the rows now and the rows before.
"""

from __future__ import annotations

from enum import StrEnum


class Strategy(StrEnum):
    INCREMENTAL = "incremental"
    """Differentials, with nothing stored."""
    TOTALS = "totals"
    """Differentials that read kept totals."""
    COUNTING = "counting"
    """Differentials that count the derivations of each row."""
    EXTERNAL = "external"
    """Rederivation of a recursive relation, with nothing stored."""
    MATERIALIZED = "materialized"
    """Rederivation of a recursive relation whose rows are stored."""
    ROUNDS = "rounds"
    """The stored rounds of a recursion that counts derivations are followed."""
    FOLLOWED = "followed"
    """Kept totals are updated by the changes of their members."""
    NAIVE = "naive"
    """Recompute both states in one statement, and compare."""
    COPIED = "copied"
    """Recompute the rows, and compare them with a stored copy."""
    STORED = "stored"
    """Recompute the rows, and compare them with those of the materialised view."""
    MOVED = "moved"
    """Recompute a view over the clock now and as of the last look, and compare."""
    APART = "apart"
    """Recompute one state after the other, because one statement for both is too long."""
    REDEFINED = "redefined"
    """Recompute a view that was defined again, and compare it with what is stored."""
    EACH_STATE = "each-state"
    """Recompute one state after the other, because an expression failed between them."""
    EVENT = "event"
    """All rows that the events of a rule are about."""
    UNCHANGED = "unchanged"
    """Nothing is computed, because nothing below has changed."""
    SKIPPED = "skipped"
    """The node is not computed, because everything above it is recomputed."""

    @property
    def words(self) -> str:
        """The strategy in words."""
        return _TITLES[self]


_TITLES = {
    Strategy.INCREMENTAL: "differentials",
    Strategy.TOTALS: "differentials that read kept totals",
    Strategy.COUNTING: "counted derivations",
    Strategy.EXTERNAL: "rederivation on demand, with nothing stored",
    Strategy.MATERIALIZED: "rederivation with the rows stored",
    Strategy.ROUNDS: "stored rounds are followed",
    Strategy.FOLLOWED: "kept totals follow their members",
    Strategy.NAIVE: "recomputed in both states and compared",
    Strategy.COPIED: "recomputed and compared with a stored copy",
    Strategy.STORED: "recomputed and compared with the rows of the view",
    Strategy.MOVED: "recomputed now and as of the last look",
    Strategy.APART: "recomputed in one state after the other",
    Strategy.REDEFINED: "recomputed and compared with what is stored",
    Strategy.EACH_STATE: "recomputed in one state after the other",
    Strategy.EVENT: "all rows that the events are about",
    Strategy.UNCHANGED: "not computed",
    Strategy.SKIPPED: "skipped",
}


FROM_SCRATCH = frozenset(
    {Strategy.NAIVE, Strategy.COPIED, Strategy.STORED, Strategy.MOVED, Strategy.APART}
)
"""Those that evaluate the view as a whole, from the stored relations."""
