"""All strategies, in order of preference: the first that follows changes, applies and is ready is
compared with recomputing.

A new strategy is a file with a class, and a line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harken.maintenance.nodes import Node
from harken.maintenance.strategies.base import MaintenanceStrategy
from harken.maintenance.strategies.both_states import APART, MOVED
from harken.maintenance.strategies.counting import COUNTING
from harken.maintenance.strategies.differentials import DIFFERENTIALS
from harken.maintenance.strategies.followed_totals import FOLLOWED_TOTALS
from harken.maintenance.strategies.kept_totals import KEPT_TOTALS
from harken.maintenance.strategies.names import FROM_SCRATCH
from harken.maintenance.strategies.recompute import RECOMPUTE
from harken.maintenance.strategies.rederivation import REDERIVATION
from harken.maintenance.strategies.rounds import FOLLOWED_ROUNDS
from harken.maintenance.strategies.stored_copy import STORED_COPY, STORED_ROWS_OF_VIEW
from harken.maintenance.strategies.stored_recursion import (
    RECOMPUTED_RECURSION,
    STORED_RECURSION,
)

if TYPE_CHECKING:
    from harken.maintenance.wave_measurements import Nodes

STRATEGIES: list[MaintenanceStrategy] = [
    FOLLOWED_TOTALS,
    FOLLOWED_ROUNDS,
    REDERIVATION,
    STORED_RECURSION,
    RECOMPUTED_RECURSION,
    COUNTING,
    KEPT_TOTALS,
    DIFFERENTIALS,
    STORED_ROWS_OF_VIEW,
    MOVED,
    STORED_COPY,
    APART,
    RECOMPUTE,
]


def find(name: str, node: Node) -> MaintenanceStrategy:
    """The strategy of this name that applies to a node."""
    return next(each for each in STRATEGIES if each.name == name and each.applies(node))


def following(node: Node) -> Sequence[MaintenanceStrategy]:
    """The strategies that may follow the changes of a node, most preferred first."""
    if node.following is None:
        node.following = [
            each for each in STRATEGIES if each.name not in FROM_SCRATCH and each.applies(node)
        ]
    return node.following


def recomputation(node: Node, graph: Nodes, reads_lake: bool = False) -> MaintenanceStrategy:
    """The strategy that recomputes a node and compares its rows with the old ones."""
    return next(
        each
        for each in STRATEGIES
        if each.name in FROM_SCRATCH
        and each.applies(node)
        and each.is_ready(node, graph)
        and (reads_lake or each is not STORED_ROWS_OF_VIEW)
    )
