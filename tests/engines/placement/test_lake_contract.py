"""SQLite with a lake keeps the contract of every engine: its relations are tables in the lake, and
queries are answered from rows that are fetched, or by Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from harken.engines.placement.file_opening import open_file
from harken.engines.placement.placement import Placement
from harken.ir.relations import Relation
from tests.engines import test_store
from tests.engines.protocol import test_capture
from tests.engines.reference import ReferenceEngine
from tests.engines.test_evaluate import facts_of, filled, planned, programs_of
from tests.harness.both import FAST, settings

LAWS = {
    name: law
    for module in (test_store, test_capture)
    for name, law in vars(module).items()
    if name.startswith("test_") and name != "test_for_a_while_the_old_rows_are_there"
}
"""All but one: what is in the lake cannot be taken back for a while (`can_take_back`)."""


class LakeEngine(Placement):
    """Every relation is one of ours in the lake. What is done around a commit (`TransactionEnd`) is
    done for each change outside a transaction."""

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None:
        self.create_own(relation)

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        with self._committed():
            super().insert_many(relation, rows)

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        with self._committed():
            super().remove_many(relation, rows)

    @contextmanager
    def _committed(self) -> Iterator[None]:
        if self.connection.in_transaction:
            yield
            return
        self.connection.begin()
        yield
        self.before_commit()
        self.connection.commit()
        self.after_commit()


@pytest.fixture
def lake() -> Iterator[LakeEngine]:
    engine = LakeEngine(open_file(":memory:"))
    engine.forced = "resident"
    yield engine
    engine.close()
    engine.connection.close()


@pytest.mark.parametrize("law", LAWS)
def test_relations_in_the_lake_keep_the_law(law: str, lake: LakeEngine) -> None:
    check: Callable[..., None] = LAWS[law]
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    given = {"engine": lake, "file_engine": lake}
    if "edge" in names:
        lake.create(test_capture.EDGE)
        lake.insert_many(test_capture.EDGE, [(1, 2), (2, 3)])
        given["edge"] = lake.capture.watch(test_capture.EDGE)
    check(**{name: given[name] for name in names})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fetched_rows_answer_as_the_reference_does(seed: int, lake: LakeEngine) -> None:
    assert_answers_agree(lake, seed, written=seed % 2 == 0)


def test_spark_answers_as_the_reference_does(spark: Any) -> None:
    engine = LakeEngine(open_file(":memory:"), spark)
    engine.forced = "spark"
    with settings(spark, **FAST):
        assert_answers_agree(engine, 1, written=True, leaving_out=RECURSIVE)
    engine.close()
    engine.connection.close()


RECURSIVE = {"a closure", "a closure without some"}
"""Each round is a job; `test_lake_recursion.py` has these."""


def assert_answers_agree(
    engine: LakeEngine, seed: int, *, written: bool, leaving_out: Collection[str] = ()
) -> None:
    """`written`: the rows are in the tables of the lake, and not pending."""
    facts, reference = facts_of(seed, bag=False), ReferenceEngine()
    for name, program in programs_of(facts, bag=False).items():
        if name in leaving_out:
            continue
        wanted = Counter(filled(reference, program, facts).compile(planned(program)).rows(()))
        filled(engine, program, facts)
        if written:
            engine.flush()
        assert Counter(engine.compile(planned(program)).rows(())) == wanted, name
