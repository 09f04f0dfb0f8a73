"""Law: a statement that was seen before, but for its constants, does what it would do if it were
parsed and planned anew: the same rows, columns and types, or the same error at the same place.

Two databases get the same random statements, each several times with other constants. One keeps
planned statements, the other none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harken
from tests.generators.refilled import refilled, with_parameters
from tests.generators.sql_scripts import Script, Scripts

seeds = st.integers(0, 2**32 - 1)
TIMES = 3
"""Each statement is run so often."""


def outcome(db: harken.Database, text: str, values: Any = None) -> Any:
    try:
        found = db.sql(text, values)
    except harken.HarkenError as error:
        # Which of several rows is found first is open, as their order is.
        message = error.message.partition(" = ")[0] if error.code == "row-exists" else error.message
        return error.code, message, error.hint, error.span
    return [
        (each.columns, [str(type_) for type_ in each.types], Counter(map(repr, each.rows)))
        for each in found
    ]


class Twins:
    """The database that keeps statements, and the one that does not."""

    def __init__(self, script: Script) -> None:
        self.both = [harken.connect(settings={"statement_cache": n}) for n in (1000, 0)]
        self.tables = [table.name for table in script.tables]
        self.views = [view.name for view in script.views]
        self.tally: Counter[str] = Counter()
        for table in script.tables:
            self.run(table.definition())
        for view in script.views:
            self.run(f"CREATE VIEW {view.name} AS {view.query}")

    def run(self, text: str, values: Any = None) -> None:
        kept, anew = (outcome(db, text, values) for db in self.both)
        assert kept == anew, (text, values, kept, anew)
        self.tally["refused" if isinstance(anew, tuple) else "done"] += 1

    def compare(self) -> None:
        for name in (*self.tables, *self.views):
            self.run(f"SELECT * FROM {name}")

    def close(self) -> None:
        for db in self.both:
            db.close()


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()
    yield counts
    assert counts["done"] >= counts["refused"], counts
    assert counts["known"] >= 0.5 * counts["texts"], counts


@given(seeds)
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_known_statement_does_what_a_new_one_does(tally: Counter[str], seed: int) -> None:
    random = Random(seed)
    script = Scripts(random).script(views=3, transactions=10)
    twins = Twins(script)
    try:
        for transaction in script.transactions:
            for text in transaction.statements:
                run_often(twins, text, random)
            twins.compare()
        for view in script.views:
            run_often(twins, view.query, random)
        tally += twins.tally
        counts = twins.both[0].internals.runtime.statement_counts
        tally["known"] += counts.known
        tally["texts"] += counts.texts
        tally["unfit"] += counts.unfit
    finally:
        twins.close()


def run_often(twins: Twins, text: str, random: Random) -> None:
    twins.run(text)
    for _ in range(TIMES):
        other = refilled(text, random)
        if other is None:
            return
        twins.run(other)
        given_values = with_parameters(other)
        if given_values is not None:
            twins.run(*given_values)
