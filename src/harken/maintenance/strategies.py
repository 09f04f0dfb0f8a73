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
    """Kept totals take in the changes of their members."""
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


FROM_SCRATCH = frozenset(
    {Strategy.NAIVE, Strategy.COPIED, Strategy.STORED, Strategy.MOVED, Strategy.APART}
)
"""Those that evaluate the view as a whole, from the stored relations."""
