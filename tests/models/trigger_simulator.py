"""A plain simulator of continual queries: it replays a history and looks at everything, every time.

It keeps the tables, each query's tables at its last execution, and what was true at the last look.
It knows nothing of views, differences or a network. A trigger is a tree of parts; after each
transaction a part says which rows it has happened for, or None.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.models.trigger_histories import Condition, Values

Key = tuple[str, Any]
"""The column that identifies a row, and its value."""
Tables = Mapping[str, Mapping[int, Values]]
Row = tuple[Any, ...]
Moment = datetime.datetime
NAMES = {"t": "k", "s": "sk"}
"""The key column of each table."""


def copied(tables: Tables) -> dict[str, dict[int, Values]]:
    return {name: {key: dict(row) for key, row in rows.items()} for name, rows in tables.items()}


@dataclass
class Look:
    """What a part may look at: the tables before the transaction, now, and at the last
    execution."""

    before: Tables
    tables: Tables
    reference: Tables
    now: Moment


class Part:
    """A part of a trigger. `holds` matters only where parts must hold together."""

    text: str

    def reads(self) -> set[str]:
        """The tables that it reads."""
        return {"t"}

    def look(self, at: Look) -> list[Key] | None:
        raise NotImplementedError

    def begin(self, at: Look) -> None:
        """The first look, and the look of an execution: what is true now is not news."""

    def executed(self, at: Look) -> None:
        self.begin(at)

    def due(self, now: Moment) -> list[Key] | None:
        """What happens because time has passed."""
        return None

    def holds(self) -> bool:
        return False

    def holding(self) -> list[Key]:
        return []


class Truths(Part):
    """A condition that is true for some keys."""

    repeats = False

    def true_now(self, at: Look) -> dict[Key, Any]:
        """The keys, with what a change of makes a change relevant."""
        raise NotImplementedError

    def begin(self, at: Look) -> None:
        self.true = self.true_now(at)

    def look(self, at: Look) -> list[Key] | None:
        before, self.true = self.true, self.true_now(at)
        changed = {k for k in self.true if self.repeats and before.get(k) != self.true[k]}
        return sorted((self.true.keys() - before.keys()) | changed) or None

    def holds(self) -> bool:
        return bool(self.true)

    def holding(self) -> list[Key]:
        return sorted(self.true)


@dataclass
class Rows(Truths):
    """A condition on the rows of a table."""

    test: Condition
    table: str = "t"
    repeats: bool = False

    def __post_init__(self) -> None:
        self.text = self.test.text

    def reads(self) -> set[str]:
        return {self.table}

    def true_now(self, at: Look) -> dict[Key, Any]:
        old, new = at.reference[self.table], at.tables[self.table]
        found: dict[Key, Any] = {}
        for key in old.keys() | new.keys():
            if key not in new and not self.test.sees_deleted:
                continue
            if self.test.holds(old.get(key), new.get(key)):
                values = new.get(key) or old.get(key) or {}
                found[NAMES[self.table], key] = {name: values[name] for name in self.test.columns}
        return found


@dataclass
class Groups(Truths):
    """A condition on an aggregate, of each group or of all rows."""

    text: str
    value: Callable[[list[Values]], bool]
    by: str | None = None

    def true_now(self, at: Look) -> dict[Key, Any]:
        rows = list(at.tables["t"].values())
        if self.by is None:
            return {("", None): True} if self.value(rows) else {}
        groups = {row[self.by] for row in rows}
        return {
            (self.by, group): True
            for group in groups
            if self.value([row for row in rows if row[self.by] == group])
        }


@dataclass
class Come(Truths):
    """A sum over the rows that were not there at the last execution."""

    bound: int

    def __post_init__(self) -> None:
        self.text = f"SUM(t.x) SINCE LAST EXECUTION > {self.bound}"

    def true_now(self, at: Look) -> dict[Key, Any]:
        new = at.tables["t"].keys() - at.reference["t"].keys()
        values = [at.tables["t"][key]["x"] for key in new]
        some = [each for each in values if each is not None]
        return {("", None): True} if some and sum(some) > self.bound else {}


@dataclass
class Events(Part):
    """Rows come, go or change."""

    kinds: tuple[str, ...]
    columns: tuple[str, ...] = ()
    table: str = "t"

    def __post_init__(self) -> None:
        of = f" ({', '.join(self.columns)})" if self.columns else ""
        self.text = f"ON {' OR '.join(self.kinds)} OF {self.table}{of}"

    def reads(self) -> set[str]:
        return {self.table}

    def look(self, at: Look) -> list[Key] | None:
        old, new = at.before[self.table], at.tables[self.table]
        found = []
        for key in sorted(old.keys() | new.keys()):
            was, row = old.get(key), new.get(key)
            kind = "INSERT" if was is None else "DELETE" if row is None else "UPDATE"
            if kind == "UPDATE":
                names = self.columns or tuple(row or ())
                if all((was or {})[name] == (row or {})[name] for name in names):
                    continue
            if kind in self.kinds:
                found.append((NAMES[self.table], key))
        return found or None


@dataclass
class Together(Part):
    """Conditions on tables that nothing joins: one happens while the others hold."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        self.text = " AND ".join(f"({each.text})" for each in self.parts)

    def reads(self) -> set[str]:
        return set().union(*(each.reads() for each in self.parts))

    def begin(self, at: Look) -> None:
        for each in self.parts:
            each.begin(at)

    def look(self, at: Look) -> list[Key] | None:
        happened = [each.look(at) for each in self.parts]
        if all(each is None for each in happened):
            return None
        rows: list[Key] = []
        for part, found in zip(self.parts, happened, strict=True):
            if found is None and not part.holds():
                return None
            rows += part.holding() if found is None else found
        return rows


@dataclass
class Combined(Part):
    parts: tuple[Part, ...]
    within: int | None = None
    times: dict[int, Moment] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.text = self._text() + (f" WITHIN {self.within} MINUTES" if self.within else "")

    def _text(self) -> str:
        raise NotImplementedError

    def reads(self) -> set[str]:
        return set().union(*(each.reads() for each in self.parts))

    def begin(self, at: Look) -> None:
        self.times.clear()
        for each in self.parts:
            each.begin(at)

    def _recent(self, began: Moment, now: Moment) -> bool:
        return self.within is None or began + datetime.timedelta(minutes=self.within) >= now


class Sequence(Combined):
    """One after another; the latest chain counts."""

    def _text(self) -> str:
        return " THEN ".join(f"({each.text})" for each in self.parts)

    def look(self, at: Look) -> list[Key] | None:
        happened = [each.look(at) for each in self.parts]
        began = {0: at.now} | {i + 1: moment for i, moment in self.times.items()}
        for place, found in enumerate(happened):
            if found is None or place not in began or not self._recent(began[place], at.now):
                continue
            if place == len(self.parts) - 1:
                self.times.clear()
                return found
            self.times[place] = began[place]
        return None


class All(Combined):
    def _text(self) -> str:
        return f"ALL OF ({', '.join(each.text for each in self.parts)})"

    def look(self, at: Look) -> list[Key] | None:
        happened = [each.look(at) for each in self.parts]
        for place, found in enumerate(happened):
            if found is not None:
                self.times[place] = at.now
        is_news = any(each is not None for each in happened)
        recent = [place for place, moment in self.times.items() if self._recent(moment, at.now)]
        if not is_news or len(recent) < len(self.parts):
            return None
        self.times.clear()
        return [key for each in happened for key in each or ()]


class AnyOf(Combined):
    def _text(self) -> str:
        return f"ANY OF ({', '.join(each.text for each in self.parts)})"

    def look(self, at: Look) -> list[Key] | None:
        happened = [found for each in self.parts if (found := each.look(at)) is not None]
        return [key for each in happened for key in each] if happened else None


class Else(Combined):
    def _text(self) -> str:
        return " ELSE ".join(f"({each.text})" for each in self.parts)

    def look(self, at: Look) -> list[Key] | None:
        happened = [each.look(at) for each in self.parts]
        return next((each for each in happened if each is not None), None)


@dataclass
class Held(Part):
    """A condition has been true without a break."""

    part: Truths
    minutes: int
    longer: bool
    since: dict[Key, Moment] = field(default_factory=dict)
    told: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        more = "MORE THAN" if self.longer else "AT LEAST"
        self.text = f"{self.part.text} FOR {more} {self.minutes} MINUTES"

    def reads(self) -> set[str]:
        return self.part.reads()

    def begin(self, at: Look) -> None:
        self.since.clear()
        self.told.clear()
        self.look(at)

    def look(self, at: Look) -> list[Key] | None:
        true = self.part.true_now(at).keys()
        late = []
        for key in sorted(self.since.keys() - true):
            if key not in self.told and self._is_due(key, at.now):
                late.append(key)  # it had held for so long, and nobody had looked
            del self.since[key]
            self.told.discard(key)
        for key in true - self.since.keys():
            self.since[key] = at.now
        return late or None

    def executed(self, at: Look) -> None:
        self.look(at)  # what goes on being true has not begun again

    def _is_due(self, key: Key, now: Moment) -> bool:
        end = self.since[key] + datetime.timedelta(minutes=self.minutes)
        return end < now if self.longer else end <= now

    def due(self, now: Moment) -> list[Key] | None:
        found = []
        for key in sorted(self.since):
            if self._is_due(key, now) and key not in self.told:
                self.told.add(key)
                found.append(key)
        return found or None


@dataclass
class Trend(Part):
    """Each change in the last minutes was a rise (or a fall), and there was one."""

    rising: bool
    minutes: int
    since: dict[int, Moment] = field(default_factory=dict)
    """When the value came to be, or last did anything else."""
    last: dict[int, Moment] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    started: Moment | None = None

    def __post_init__(self) -> None:
        word = "INCREASED" if self.rising else "DECREASED"
        self.text = f"x {word} MONOTONICALLY FOR {self.minutes} MINUTES"

    def begin(self, at: Look) -> None:
        self.since = dict.fromkeys(at.tables["t"], at.now)
        self.last.clear()
        self.told.clear()

    def executed(self, at: Look) -> None:
        """An execution moves no reference that this depends on."""

    def look(self, at: Look) -> list[Key] | None:
        found = []
        for key in sorted(self.since.keys() - at.tables["t"].keys()):
            if self._is_late(key, at.now):
                found.append(("k", key))
            self._forget(key)
        for key, row in sorted(at.tables["t"].items()):
            was, now = at.before["t"].get(key, {}).get("x"), row["x"]
            if key in at.before["t"] and was == now:
                continue
            forward = None not in (was, now) and (now > was if self.rising else now < was)
            if not forward or key not in self.since:
                if self._is_late(key, at.now):
                    found.append(("k", key))
                self._forget(key)
                self.since[key] = at.now
                continue
            if key in self.told and self.last[key] + self._length < at.now:
                self.told.discard(key)  # nothing has risen for so long
            self.last[key] = at.now
            if self.since[key] + self._length <= at.now and key not in self.told:
                self.told.add(key)
                found.append(("k", key))
        return found or None

    @property
    def _length(self) -> datetime.timedelta:
        return datetime.timedelta(minutes=self.minutes)

    def _is_late(self, key: int, now: Moment) -> bool:
        """Whether it had risen for so long, and nobody had looked."""
        was_rising = key in self.last and key not in self.told
        return was_rising and self.since[key] + self._length <= now

    def _forget(self, key: int) -> None:
        self.since.pop(key, None)
        self.last.pop(key, None)
        self.told.discard(key)

    def due(self, now: Moment) -> list[Key] | None:
        found = [
            key
            for key in sorted(self.last)
            if key not in self.told and self.since[key] + self._length <= now
        ]
        self.told.update(found)
        return [("k", key) for key in found] or None


@dataclass
class Simulated:
    """A continual query."""

    part: Part | None
    """None if it waits for so many changes of its answer."""
    answer: Callable[[Tables], Counter[Row]]
    changes: int = 0
    delay: int = 0
    while_true: bool = False
    is_complete: bool = False
    """Whether the whole answer is delivered, always: its trigger reads other relations only."""
    state: str = "active"
    snoozed: Moment | None = None
    executions: int = 1
    reference: Tables = field(default_factory=dict)
    told: Counter[Row] = field(default_factory=Counter)
    waiting: list[tuple[Moment, list[Key]]] = field(default_factory=list)
    done: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def trigger(self) -> str:
        if self.part is None:
            return f"AFTER {self.changes} CHANGES"
        lead = "" if self.part.text.startswith("ON ") else "WHILE " if self.while_true else "WHEN "
        after = f"{self.delay} MINUTES AFTER " if self.delay else ""
        return f"{after}{lead}{self.part.text}"

    def install(self, tables: Tables, now: Moment) -> None:
        self.is_complete = self.part is not None and "t" not in self.part.reads()
        self.told = self.answer(tables)
        self.messages.append((1, sorted(self.told.elements())))
        self.start(tables, now)

    def start(self, tables: Tables, now: Moment) -> None:
        """Installed or resumed, or what it reads was redefined: the first look."""
        self.reference = copied(tables)
        if self.part is not None:
            self.part.begin(Look(tables, tables, self.reference, now))

    def commit(self, before: Tables, tables: Tables, now: Moment) -> None:
        if self.state != "active":
            return
        if self.part is not None:
            found = self.part.look(Look(before, tables, self.reference, now))
            if found is not None:
                self._fire(found, now)
        elif self.answer(tables) != self.answer(before) and not self.waiting:
            count = self._difference(tables)[2]
            if count >= self.changes:
                self._fire([], now)

    def _fire(self, keys: Iterable[Key], now: Moment) -> None:
        self.waiting.append((now + datetime.timedelta(minutes=self.delay), list(keys)))

    def _difference(self, tables: Tables) -> tuple[list[Row], list[Row], int]:
        answer = self.answer(tables)
        plus, minus = answer - self.told, self.told - answer
        count = plus.total() + minus.total()
        return sorted(plus.elements()), sorted(minus.elements()), count

    def run(self, tables: Tables, now: Moment, asked: bool = False) -> None:
        if not asked and self.part is not None and self.state == "active":
            found = self.part.due(now)
            if found is not None:
                self._fire(found, now)
        if self.snoozed is not None and self.snoozed <= now:
            self.snoozed = None
        ready = self.state == "active" and self.snoozed is None
        due = [keys for at, keys in self.waiting if ready and at <= now]
        if not due and not asked:
            return
        self.waiting = [each for each in self.waiting if not (each[0] <= now)]
        plus, minus, _ = self._difference(tables)
        self.told = self.answer(tables)
        self.executions += 1
        keys = sorted({key for each in due for key in each if key[0]}, key=repr)
        self.done.append((self.executions, now, plus, minus, keys))
        if plus or self.is_complete:
            self.messages.append((self.executions, plus))
        self.reference = copied(tables)
        if self.part is not None and self.state == "active":
            self.part.executed(Look(tables, tables, self.reference, now))

    def pause(self) -> None:
        self.state, self.snoozed, self.waiting = "paused", None, []

    def resume(self, tables: Tables, now: Moment) -> None:
        if self.state == "paused":
            self.state = "active"
            self.start(tables, now)
        self.snoozed = None

    def snooze(self, until: Moment, tables: Tables, now: Moment) -> None:
        self.resume(tables, now)
        self.snoozed = until
