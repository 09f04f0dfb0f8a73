"""Random content triggers and histories: the same firings, for the same rows, as a plain model."""

import datetime
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from tests.models.trigger_histories import (
    Condition,
    RowModel,
    Values,
    condition_of,
    history,
    restricted,
)

START = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)


class _Beside:
    """A database with continual queries, and the model of each."""

    def __init__(self, chance: random.Random, models: list[RowModel]) -> None:
        self.now = START
        self.chance = chance
        self.models = {f"q{i}": model for i, model in enumerate(models)}
        self.db = harken.connect(clock=lambda: self.now)
        self.db.sql("CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT, y INT)")

    def install(self) -> None:
        for name, model in self.models.items():
            strategy = self.chance.choice(["naive", "differential"])
            self.db.sql(
                f"CREATE CONTINUAL QUERY {name} AS SELECT k FROM t TRIGGER {model.text} "
                f"STRATEGY {strategy}"
            )
            model.execute(self.now)

    def transaction(self, steps: list[tuple[str, int, Values]]) -> None:
        with self.db.transaction():
            for kind, key, values in steps:
                self._step(kind, key, values)
        for model in self.models.values():
            model.look(self.now)

    def _step(self, kind: str, key: int, values: Values) -> None:
        match kind:
            case "insert":
                self.db.sql("INSERT INTO t VALUES (?, ?, ?, ?)", [key, *values.values()])
            case "delete":
                self.db.sql("DELETE FROM t WHERE k = ?", [key])
            case "update":
                ((name, value),) = values.items()
                self.db.sql(f"UPDATE t SET {name} = ? WHERE k = ?", [value, key])
        for model in self.models.values():
            if kind == "delete":
                model.rows.pop(key, None)
            else:
                model.rows[key] = {**model.rows.get(key, {}), **values}

    def run(self) -> None:
        done = {each.query: each for each in self.db.run_due()}
        found = {name: sorted({row["k"] for row in each.cause.rows}) for name, each in done.items()}
        expected = {name: model.run(self.now) for name, model in self.models.items()}
        assert found == {n: keys for n, keys in expected.items() if keys is not None}


def _model(chance: random.Random) -> RowModel:
    test: Condition = condition_of(chance)
    if chance.random() < 0.5:
        test = restricted(chance, test)
    minutes = chance.choice([None, None, None, 5])
    return RowModel(test, repeats=minutes is None and chance.random() < 0.3, minutes=minutes)


def _play(seed: int, queries: int, length: int) -> None:
    chance = random.Random(seed)
    beside = _Beside(chance, [_model(chance) for _ in range(queries)])
    try:
        steps = list(history(chance, length))
        start = chance.randint(0, 3)
        for each in steps[:start]:
            beside.transaction(each)
        for model in beside.models.values():
            model.fired, model.waiting = False, []
            model.since.clear()
            model.told.clear()
        beside.install()
        for each in steps[start:]:
            beside.transaction(each)
            if chance.random() < 0.6:
                beside.run()
            beside.now += datetime.timedelta(minutes=chance.choice([0, 1, 3, 6]))
        beside.run()
    finally:
        beside.db.close()


@settings(max_examples=8)
@given(st.integers(min_value=0, max_value=10**9))
def test_triggers_fire_as_the_model_says(seed: int) -> None:
    _play(seed, queries=5, length=14)


@pytest.mark.nightly
@settings(max_examples=1000)
@given(st.integers(min_value=0, max_value=10**9))
def test_triggers_fire_as_the_model_says_for_long(seed: int) -> None:
    _play(seed, queries=8, length=60)
