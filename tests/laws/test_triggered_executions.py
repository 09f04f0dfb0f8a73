"""Random triggers and histories, in several sessions, with rollbacks, restarts and redefinitions,
against a simulator: the same executions, for the same rows, and the same deliveries."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from tests.models import trigger_simulator as sim
from tests.models.trigger_histories import Condition, Values, condition_of, restricted

START = datetime.datetime(2026, 3, 29, 0, 17, tzinfo=datetime.UTC)
MINUTES = (2, 5, 9)


def rows(chance: Random) -> sim.Rows:
    test = condition_of(chance, depth=chance.choice((0, 1, 2)))
    return sim.Rows(restricted(chance, test) if chance.random() < 0.3 else test)


def other_rows(chance: Random) -> sim.Rows:
    bound = chance.randint(0, 3)

    def holds(old: Values | None, new: Values | None) -> bool:
        return bool((new or {})["v"] > bound)

    return sim.Rows(Condition(f"s.v > {bound}", holds, frozenset("v")), "s")


def groups(chance: Random) -> sim.Truths:
    bound, by = chance.randint(0, 4), chance.choice((None, "g"))
    kind = chance.choice(("MAX", "COUNT", "SUM"))
    if kind == "COUNT":
        text, value = f"COUNT(*) > {bound}", lambda rows: len(rows) > bound
    else:
        text, value = f"{kind}(t.x) > {bound}", lambda rows: _above(kind, rows, bound)
    return sim.Groups(text + (" GROUP BY t.g" if by else ""), value, by)


def _above(kind: str, rows: list[Values], bound: int) -> bool:
    values = [row["x"] for row in rows if row["x"] is not None]
    return bool(values) and {"MAX": max, "SUM": sum}[kind](values) > bound


def events(chance: Random) -> sim.Part:
    kinds = tuple(chance.sample(("INSERT", "UPDATE", "DELETE"), chance.randint(1, 3)))
    columns = ("x",) if kinds == ("UPDATE",) and chance.random() < 0.5 else ()
    return sim.Events(kinds, columns, "t" if columns else chance.choice("tts"))


def simple(chance: Random) -> sim.Part:
    return chance.choice((rows, rows, other_rows, groups, events))(chance)


def part_of(chance: Random) -> sim.Part:
    kind = chance.choice(("one", "one", "one", "and", "tree", "tree", "held", "trend", "come"))
    match kind:
        case "and":
            return sim.Together((rows(chance), other_rows(chance)))
        case "tree":
            parts = tuple(simple(chance) for _ in range(chance.choice((2, 2, 3))))
            made = chance.choice((sim.Sequence, sim.Sequence, sim.All, sim.AnyOf, sim.Else))
            if made is sim.AnyOf:  # conditions of the same rows would be one condition
                parts = (rows(chance), chance.choice((other_rows, groups, events))(chance))
            ends = made in (sim.Sequence, sim.All) and chance.random() < 0.6
            return made(parts, chance.choice(MINUTES) if ends else None)
        case "held":
            part = chance.choice((rows, other_rows))(chance)
            return sim.Held(part, chance.choice(MINUTES), chance.random() < 0.5)
        case "trend":
            return sim.Trend(chance.random() < 0.5, chance.choice(MINUTES))
        case "come":
            return sim.Come(chance.randint(-2, 6))
    return simple(chance)


def query_of(chance: Random) -> tuple[str, Any]:
    bound = chance.randint(-2, 4)
    if chance.random() < 0.5:
        text = f"SELECT k, x FROM t WHERE x > {bound}"

        def answer(tables: sim.Tables) -> Counter[Any]:
            found = tables["t"].items()
            kept = [(k, r["x"]) for k, r in found if r["x"] is not None and r["x"] > bound]
            return Counter(kept)
    else:
        text = f"SELECT g, count(*) AS n FROM t WHERE k > {bound} GROUP BY g"

        def answer(tables: sim.Tables) -> Counter[Any]:
            counts = Counter(row["g"] for key, row in tables["t"].items() if key > bound)
            return Counter(list(counts.items()))

    return text, answer


class Trial:
    def __init__(self, directory: Path, chance: Random, queries: int) -> None:
        self.chance, self.now, self.extra = chance, START, 0
        self.path, self.out = str(directory / "cq.db"), directory / "out.jsonl"
        self.sessions = [self.connect()]
        self.sessions[0].sql(
            "CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT, y INT);"
            "CREATE TABLE s (sk INT PRIMARY KEY, v INT)"
        )
        self.sessions.append(self.connect())
        self.tables: dict[str, dict[int, Values]] = {"t": {}, "s": {}}
        self.simulated: dict[str, sim.Simulated] = {}
        self.found: dict[str, list[tuple[Any, ...]]] = {}
        for _ in range(chance.randint(0, 3)):
            self.transaction()
        for number in range(queries):
            self.install(f"q{number}")

    def connect(self) -> harken.Database:
        return harken.connect(self.path, clock=lambda: self.now)

    @property
    def db(self) -> harken.Database:
        return self.chance.choice(self.sessions)

    def install(self, name: str) -> None:
        text, answer = query_of(self.chance)
        strategy = self.chance.choice(("auto", "naive", "differential"))
        if self.chance.random() < 0.12:
            made = sim.Simulated(None, answer, changes=self.chance.randint(1, 4))
            strategy = "auto"
        else:
            part = part_of(self.chance)
            made = sim.Simulated(part, answer, delay=self.chance.choice((0, 0, 0, 3)))
            if isinstance(part, sim.Truths) and not isinstance(part, sim.Come):
                made.while_true = part.repeats = isinstance(part, sim.Rows) and (
                    self.chance.random() < 0.3
                )
        self.db.sql(
            f"CREATE CONTINUAL QUERY {name} AS {text} TRIGGER {made.trigger} "
            f"STRATEGY {strategy} NOTIFY FILE '{self.out}'"
        )
        made.install(self.tables, self.now)
        self.simulated[name], self.found[name] = made, []

    # --- what happens ------------------------------------------------------------------------

    def step(self) -> None:
        kinds = [self.transaction] * 8 + [self.run] * 5 + [self.wait] * 4
        kinds += [self.rolled_back, self.reopen, self.execute, self.pause, self.snooze]
        self.chance.choice(kinds)()

    def transaction(self) -> None:
        before, db = sim.copied(self.tables), self.db
        with db.transaction():
            for _ in range(self.chance.choice((1, 1, 2, 3))):
                self.change(db)
        for each in self.simulated.values():
            each.commit(before, self.tables, self.now)

    def rolled_back(self) -> None:
        before, db = sim.copied(self.tables), self.db
        db.begin()
        for _ in range(3):
            self.change(db)
        db.rollback()
        self.tables = before

    def change(self, db: harken.Database) -> None:
        chance, t, s = self.chance, self.tables["t"], self.tables["s"]
        key, value = chance.randint(1, 4), chance.choice((None, 0, *range(-3, 7)))
        if chance.random() < 0.25:
            if key in s and chance.random() < 0.4:
                db.sql("DELETE FROM s WHERE sk = ?", (key,))
                del s[key]
            else:
                db.sql(
                    "INSERT INTO s VALUES (?, ?) ON CONFLICT (sk) DO UPDATE SET v = excluded.v",
                    (key, value or 0),
                )
                s[key] = {"v": value or 0}
        elif key not in t:
            row = {"g": chance.choice("ab"), "x": value, "y": chance.choice((None, 0, 3))}
            db.sql("INSERT INTO t (k, g, x, y) VALUES (?, ?, ?, ?)", (key, *row.values()))
            t[key] = row
        elif chance.random() < 0.2:
            db.sql("DELETE FROM t WHERE k = ?", (key,))
            del t[key]
        else:
            name = chance.choice(("g", "x", "x", "x", "y"))
            new = chance.choice("ab") if name == "g" else value
            db.sql(f"UPDATE t SET {name} = ? WHERE k = ?", (new, key))
            t[key] = {**t[key], name: new}

    def wait(self) -> None:
        self.now += datetime.timedelta(minutes=self.chance.choice((1, 2, 3, 5, 9)))

    def run(self) -> None:
        for done in self.db.run_due():
            self.note(done)
        for each in self.simulated.values():
            each.run(self.tables, self.now)

    def note(self, done: Any) -> None:
        keys = {key for row in done.cause.rows for key in _keys(self.simulated[done.query], row)}
        said = (done.execution, done.at, done.inserted, done.deleted, sorted(keys, key=repr))
        self.found[done.query].append(said)

    def reopen(self) -> None:
        place = self.chance.randrange(len(self.sessions))
        self.sessions[place].close()
        self.sessions[place] = self.connect()

    def any_query(self) -> tuple[sim.Simulated, Any]:
        name = self.chance.choice(sorted(self.simulated))
        return self.simulated[name], self.db.continual(name)

    def execute(self) -> None:
        made, handle = self.any_query()
        self.note(handle.run())
        made.run(self.tables, self.now, asked=True)

    def pause(self) -> None:
        made, handle = self.any_query()
        if made.state == "active":
            handle.pause()
            made.pause()
        else:
            handle.resume()
            made.resume(self.tables, self.now)

    def snooze(self) -> None:
        made, handle = self.any_query()
        until = self.now + datetime.timedelta(minutes=4)
        handle.snooze(until)
        made.snooze(until, self.tables, self.now)

    # --- what came of it ---------------------------------------------------------------------

    def check(self) -> None:
        self.run()
        for name, made in self.simulated.items():
            assert self.found[name] == made.done, made.trigger
            assert self.messages(name) == made.messages, made.trigger

    def messages(self, name: str) -> list[tuple[Any, ...]]:
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        found = [json.loads(line) for line in lines]
        return [
            (each["execution"], sorted(tuple(row.values()) for row in each["inserted"]))
            for each in found
            if each["query"] == name
        ]

    def close(self) -> None:
        for each in self.sessions:
            each.close()


def _keys(made: sim.Simulated, row: dict[str, Any]) -> list[sim.Key]:
    """What identifies the row that fired."""
    if "k" in row or "sk" in row:
        return [(name, row[name]) for name in ("k", "sk") if name in row]
    return [("g", row["g"])] if "g" in row else []


def play(seed: int, queries: int, length: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(Path(directory), Random(seed), queries)
        try:
            for _ in range(length):
                trial.step()
            trial.check()
        finally:
            trial.close()


@settings(max_examples=6, deadline=None)
@given(st.integers(min_value=0, max_value=10**9))
def test_the_same_executions_and_deliveries(seed: int) -> None:
    play(seed, queries=6, length=25)


@pytest.mark.nightly
@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0, max_value=10**9))
def test_the_same_executions_and_deliveries_for_long(seed: int) -> None:
    play(seed, queries=10, length=60)
