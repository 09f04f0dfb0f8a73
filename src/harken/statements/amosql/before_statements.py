"""Before-rules act before the statement that triggers them (HiPAC's coupling; thesis, 2.3).

What a statement triggers is known when it has been executed. So it is tried first: executed, looked
at, and undone. Then the rules act in the state before it, and it is executed. What it does outside
the database must not happen twice: a statement that calls a Python procedure is not tried, and the
rules act right after it, as after changes by SQL or by Python.

Law: a trial leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from harken.consumers.rules.rules import Rules
from harken.database.actions import RollbackRequest
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError
from harken.statements.amosql.steps import TrialOver


def act_before(
    runtime: Runtime, transactions: Transactions, rules: Rules, execute: Callable[[], None]
) -> None:
    """Let before-rules act on what a statement would trigger."""
    found: list[Any] = []
    # What fails in the trial fails again, and is told then.
    with (
        suppress(HarkenError, RollbackRequest, TrialOver),
        _silently(runtime),
        transactions.all_or_nothing(),
    ):
        execute()
        found = rules.about_to_act()
        raise TrialOver
    rules.act_before(found)


@contextmanager
def _silently(runtime: Runtime) -> Iterator[None]:
    """In the block nothing is printed, and no rule acts; variables are put back."""
    listener, interface, names = runtime.listener, dict(runtime.interface), dict(runtime.names)
    runtime.listener, runtime.is_trial = lambda _: None, True
    try:
        with runtime.holding_back():
            yield
    finally:
        runtime.listener, runtime.is_trial = listener, False
        runtime.interface.clear()
        runtime.interface.update(interface)
        runtime.names.clear()
        runtime.names.update(names)
