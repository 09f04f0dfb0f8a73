"""Signals: events that an application raises, for which continual queries can wait."""

from __future__ import annotations

from harken.api.internals import Internals
from harken.database.arguments import check_text
from harken.database.permissions import Role
from harken.statements.declaring import check_name


def raise_signal(internals: Internals, name: str) -> None:
    """Raise a signal in the open transaction, or in one of its own."""
    check_text(name, "the name of a signal")
    check_name(name, None)
    internals.runtime.permissions.check_role(Role.AUTHOR, "raising a signal", None)
    transactions = internals.transactions
    own = not transactions.active
    with transactions.statement():
        internals.continual.raise_signal(name)
        internals.rules.composed.raise_signal(name)
    if own and not transactions.in_block:
        transactions.commit()
