"""Continual queries against a plain simulator that replays the history with a clock of its own.

Law: the same executions at the same moments, with the same differences, and the same messages.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken

START = datetime.datetime(2026, 3, 28, 21, 17, tzinfo=datetime.UTC)
MINUTES = (7, 20, 60, 360)
DELIVERIES = ("INSERTED", "DELETED", "CHANGED BY (k)", "COMPLETE", "COUNT", "INSERTED ALWAYS")
NAMES = ("a", "b", "c")
Row = tuple[int, int]


@dataclass
class Simulated:
    """A query `SELECT k, v FROM t WHERE v < limit` as anybody would write it down."""

    limit: int
    minutes: int
    delivery: str
    most: int | None
    stop: datetime.datetime
    installed: datetime.datetime
    looked: datetime.datetime
    before: Counter[Row]
    executions: int = 1
    state: str = "active"
    snoozed: datetime.datetime | None = None
    muted: bool = False
    done: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[tuple[Any, ...]] = field(default_factory=list)

    def answer(self, table: dict[int, int]) -> Counter[Row]:
        return Counter({row: 1 for row in table.items() if row[1] < self.limit})

    def run(self, now: datetime.datetime, table: dict[int, int], asked: bool = False) -> None:
        if self.state == "stopped":
            return
        if now >= self.stop:
            self._stop()
            return
        if self.snoozed is not None and now >= self.snoozed:
            self.snoozed = None
        is_due = self.state == "active" and self.snoozed is None and self._is_due(now)
        if not (asked or is_due):
            return
        answer = self.answer(table)
        plus, minus = sorted((answer - self.before).elements()), sorted(self.before - answer)
        self.before, self.looked = answer, max(self.looked, now)
        self.executions += 1
        self.done.append((self.executions, now, plus, minus))
        if not self.muted:
            self._tell(plus, minus, answer)
        if self.most is not None and self.executions >= self.most:
            self._stop()

    def _is_due(self, now: datetime.datetime) -> bool:
        length = datetime.timedelta(minutes=self.minutes)
        times = (now - self.installed) // length
        return times >= 1 and self.installed + times * length > self.looked

    def _tell(self, plus: list[Row], minus: list[Row], answer: Counter[Row]) -> None:
        part = self.delivery.split()[0]
        keys = {row[0] for row in plus} & {row[0] for row in minus}
        said: dict[str, Any] = {
            "INSERTED": (plus, [], 0),
            "DELETED": ([], minus, 0),
            "COMPLETE": (plus, minus, 0),
            "COUNT": ([], [], 0),
            "CHANGED": (
                [row for row in plus if row[0] not in keys],
                [row for row in minus if row[0] not in keys],
                len(keys),
            ),
        }
        found = said[part]
        has_any = any(found) or (part == "COUNT" and (plus or minus))
        if has_any or part == "COMPLETE" or "ALWAYS" in self.delivery:
            count = answer.total() if part == "COUNT" else None
            self.messages.append(("results", self.executions, *found, count))

    def _stop(self) -> None:
        self.state = "stopped"
        self.messages.append(("stopped", self.executions, [], [], 0, None))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    queries = [
        {
            "limit": draw(st.integers(1, 6)),
            "minutes": draw(st.sampled_from(MINUTES)),
            "delivery": draw(st.sampled_from(DELIVERIES)),
            "most": draw(st.none() | st.integers(2, 4)),
            "days": draw(st.integers(1, 2)),
            "strategy": draw(st.sampled_from(("auto", "naive"))),
        }
        for _ in range(draw(st.integers(1, 3)))
    ]
    names = st.sampled_from(NAMES[: len(queries)])
    key, value = st.integers(0, 3), st.integers(0, 6)
    step = st.one_of(
        st.tuples(st.just("put"), key, value),
        st.tuples(st.just("put"), key, value),
        st.tuples(st.just("drop"), key),
        st.tuples(st.just("wait"), st.sampled_from((1, 6, 7, 13, 20, 61, 500))),
        st.tuples(st.just("wait"), st.sampled_from((1, 6, 7, 13, 20, 61, 500))),
        st.tuples(st.just("run")),
        st.tuples(st.just("execute"), names),
        st.tuples(st.sampled_from(("pause", "resume", "mute", "unmute")), names),
        st.tuples(st.just("snooze"), names, st.sampled_from((5, 40))),
        st.tuples(st.just("strategy"), names, st.sampled_from(("naive", "differential"))),
        st.tuples(st.just("reopen")),
    )
    return queries, draw(st.lists(step, min_size=4, max_size=25))


class Trial:
    def __init__(self, directory: Path, queries: list[dict[str, Any]]) -> None:
        self.now, self.table = START, {0: 0, 1: 3, 2: 5}
        self.path, self.out = str(directory / "cq.db"), directory / "out.jsonl"
        self.db = self.connect()
        self.db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        self.db.sql("INSERT INTO t VALUES (?, ?)", list(self.table.items()))
        self.simulated = {
            name: self.install(name, query) for name, query in zip(NAMES, queries, strict=False)
        }
        self.found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.simulated}

    def connect(self) -> harken.Database:
        return harken.connect(self.path, clock=lambda: self.now)

    def install(self, name: str, query: dict[str, Any]) -> Simulated:
        stop = f"AFTER {query['days']} DAYS"
        if query["most"] is not None:
            stop += f" OR AFTER {query['most']} EXECUTIONS"
        self.db.sql(
            f"CREATE CONTINUAL QUERY {name} AS SELECT k, v FROM t WHERE v < {query['limit']} "
            f"TRIGGER EVERY {query['minutes']} MINUTES STOP {stop} DELIVER {query['delivery']} "
            f"STRATEGY {query['strategy']} NOTIFY FILE '{self.out}'"
        )
        made = Simulated(
            query["limit"],
            query["minutes"],
            query["delivery"],
            query["most"],
            START + datetime.timedelta(days=query["days"]),
            START,
            START,
            Counter(),
        )
        made.before = made.answer(self.table)
        whole = sorted(made.before) if query["delivery"] != "COUNT" else []
        count = len(made.before) if query["delivery"] == "COUNT" else None
        made.messages.append(("results", 1, whole, [], 0, count))
        return made

    def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("put", key, value):
                self.table[key] = value
                self.db.sql(
                    "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
                    (key, value),
                )
            case ("drop", key):
                self.table.pop(key, None)
                self.db.sql("DELETE FROM t WHERE k = ?", (key,))
            case ("wait", minutes):
                self.now += datetime.timedelta(minutes=minutes)
            case ("run",):
                self.run()
            case ("reopen",):
                self.db.close()
                self.db = self.connect()
            case (what, name, *rest):
                self.change(what, name, *rest)

    def run(self) -> None:
        for done in self.db.run_due():
            self.note(done)
        for each in self.simulated.values():
            each.run(self.now, self.table)

    def note(self, done: Any) -> None:
        if done is not None:
            rows = done.execution, done.at, done.inserted, done.deleted
            self.found[done.query].append(rows)

    def change(self, what: str, name: str, *rest: Any) -> None:
        model, handle = self.simulated[name], self.db.continual(name)
        if model.state == "stopped":
            with pytest.raises(harken.HarkenError):
                handle.pause()
            return
        match what:
            case "execute":
                self.note(handle.run())
                model.run(self.now, self.table, asked=True)
            case "pause":
                handle.pause()
                model.state, model.snoozed = "paused", None
            case "resume":
                handle.resume()
                if model.state == "paused":
                    model.looked = max(model.looked, self.now)
                model.state, model.snoozed = "active", None
            case "mute" | "unmute":
                handle.mute() if what == "mute" else handle.unmute()
                model.muted = what == "mute"
            case "snooze":
                until = self.now + datetime.timedelta(minutes=rest[0])
                handle.snooze(until)
                if model.state == "paused":
                    model.looked = max(model.looked, self.now)
                model.state, model.snoozed = "active", until
            case "strategy":
                handle.alter(strategy=rest[0])

    def messages(self, name: str) -> list[tuple[Any, ...]]:
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        found = [json.loads(line) for line in lines]

        def rows(message: dict[str, Any], part: str) -> list[Row]:
            return [(row["k"], row["v"]) for row in message.get(part, [])]

        return [
            (
                each["kind"],
                each["execution"],
                rows(each, "inserted"),
                rows(each, "deleted"),
                len(each.get("changed", [])),
                each.get("count"),
            )
            for each in found
            if each["query"] == name
        ]


def follow(history: tuple[list[dict[str, Any]], list[tuple[Any, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(Path(directory), history[0])
        try:
            for step in [*history[1], ("run",)]:
                trial.do(step)
            for name, model in trial.simulated.items():
                assert trial.found[name] == model.done
                assert trial.messages(name) == model.messages
        finally:
            trial.db.close()


@settings(max_examples=15, deadline=None)
@given(histories())
def test_the_same_executions_and_deliveries(history: Any) -> None:
    follow(history)


@pytest.mark.nightly
@settings(max_examples=500, deadline=None)
@given(histories())
def test_the_same_executions_and_deliveries_in_many_histories(history: Any) -> None:
    follow(history)
