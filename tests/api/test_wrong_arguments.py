"""Every public method, called with values that it does not take.

Law: the outcome is a result or an error of ours, never another exception, and the session still
works afterwards. So is a call with too few arguments, or with unknown ones.
"""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.database.permissions import Role, User

VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), Decimal("NaN"), 1j),
    *("", "nope", "a b", "\ud800", "a\0b", "9" * 5000, b"bytes", bytearray(b"x")),
    *([], [1], [None], [("a",)], [["x", object()]], (), (1, 2, 3), (None,), ((),), {}, {"a": 1}),
    *({1: 2}, {"quantity": [1]}, set(), frozenset({1}), range(3), iter([1]), slice(1, 2)),
    *(object(), object, len, lambda: None, Path("nope"), Ellipsis),
    *(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), datetime.timedelta(1)),
    *(harken.Object(1, "item"), harken.Object(10**30, "item"), harken.Keep()),
)

SCHEMA = """
create type item properties (name charstring, quantity integer);
create function likes(item) -> bag of item as stored;
create function low() -> item as select i for each item i where quantity(i) < 5;
create item (name, quantity) instances :a ("a", 1), :b ("b", 9);
commit;
"""


CALLED_BACK = ("listener", "warn", "clock", "function")
"""Parameters for functions: what those raise is their own affair."""


def values_for(parameter: str) -> list[Any]:
    return [each for each in VALUES if parameter not in CALLED_BACK or not callable(each)]


def good_calls(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """A right call of each method of Database that a wrong one is made of."""
    return {
        "amosql": {"text": "print(1);"},
        "sql": {"text": "SELECT 1"},
        "datalog": {"text": "?- e(x).", "facts": tmp_path, "output": tmp_path},
        "program": {"text": "rule r: e(x) -> !e(x)."},
        "check": {"text": "rule r: e(x) -> !e(x).", "language": "datalog", "source": "x"},
        "run_program": {
            "language": "sql",
            "text": "SELECT 1",
            "listener": print,
            "source": "x",
            "facts": ".",
            "output": None,
            "warn": None,
            "strategy": "auto",
            "materialise": "auto",
        },
        "continual": {
            "name": "q",
            "query": "SELECT name FROM low",
            "trigger": "EVERY DAY",
            "notify": ["LOG"],
            "priority": 3,
        },
        "views": {},
        "describe": {"name": "low", "where": None},
        "describe_table": {"name": "low"},
        "definitions": {},
        "kept": {},
        "redefining": {},
        "readers_of": {"name": "low"},
        "changes_after": {"name": "low", "position": 0, "where": None, "net": False},
        "history": {"name": "low"},
        "watch_views": {"listener": print},
        "listening": {"listener": print},
        "function": {"name": "quantity"},
        "monitor": {
            "name": "low",
            "listener": print,
            "durable": None,
            "strategy": "auto",
            "where": None,
            "keep": None,
            "since": None,
        },
        "snapshot": {"name": "low", "where": None},
        "outboxes": {},
        "next_due": {},
        "run_due": {},
        "signal": {"name": "s"},
        "foreign": {"name": "f", "function": print},
        "find_modules_in": {},
        "cancel": {"reason": "enough"},
        "one_statement": {},
        "acting_as": {"user": User("ann", Role.READER)},
        "backup": {
            "path": tmp_path / "b.harken",
            "lake": "copy",
            "secrets": False,
            "overwrite": True,
        },
        "verify": {},
        "detached_actions": {},
        "retry_actions": {"numbers": []},
        "discard_actions": {"numbers": []},
        "load": {"name": "item", "rows": [("x", 1)], "properties": ["name", "quantity"]},
        "prepare": {"text": "SELECT ? + 1"},
        "insert": {"table": "t", "rows": [(1, "x")]},
        "upsert": {"table": "t", "rows": [{"a": 1}]},
        "delete": {"table": "t", "rows": [{"a": 1, "b": "x"}]},
        "assign": {"name": "x", "value": 1},
        "name_of": {"value": harken.Object(1, "item")},
        "explain": {"name": "low", "verbose": False, "format": "text"},
        "trace": {"listener": print},
        "round_limit": {"rounds": 5},
        "action_limit": {"tuples": 5},
        "monitoring": {"strategy": "adaptive"},
        "lake": {
            "name": "f",
            "source": str(tmp_path / "none"),
            "key": ["k"],
            "unique": True,
            "columns": None,
            "format": None,
            "schema": None,
            "version": None,
        },
        "feed": {
            "name": "quantity",
            "stream": None,
            "checkpoint": tmp_path,
            "mode": "append",
            "latest_by": None,
            "every": None,
            "available_now": False,
        },
        "step": {"strict": True, "warn": print},
        "lake_status": {},
        "progress": {"listener": print},
        "flush": {},
        "transaction": {},
        "begin": {},
        "commit": {},
        "rollback": {},
        "close": {},
    }


def public(kind: type) -> list[str]:
    return [
        name
        for name, each in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]


@pytest.fixture
def db() -> Iterator[harken.Database]:
    database = harken.connect()
    database.amosql(SCHEMA)
    database.sql("CREATE TABLE t (a INT, b STRING); CREATE VIEW w AS SELECT a FROM t")
    database.datalog(".decl e(x: number) e(1).")
    yield database
    database.close()


def wrong(call: Callable[..., Any], **given: Any) -> None:
    """Call, and look at what comes back as a user would; only errors of ours may come."""
    try:
        found = call(**given)
        if hasattr(found, "__enter__") and not isinstance(found, harken.Subscription):
            with found:
                pass
        elif isinstance(found, harken.Subscription):
            found.changes()
            found.close()
        elif isinstance(found, Iterator):
            list(found)
    except harken.HarkenError as error:
        error.report().encode()


@pytest.mark.parametrize("name", public(harken.Database))
def test_methods_of_a_database(
    db: harken.Database, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a name may be that of a file to write
    good = good_calls(tmp_path)[name]
    for parameter in good:
        for value in values_for(parameter):
            with db.listening(lambda result: None):
                wrong(getattr(db, name), **{**good, parameter: value})
            db.trace(None)
            if db.in_transaction:
                db.rollback()
            assert db.sql("SELECT 1").rows == [(1,)]
    assert db.function("quantity")[db.variables["a"]] == 1


def test_directories_of_modules(db: harken.Database) -> None:
    for value in VALUES:
        wrong(lambda value: db.find_modules_in(value), value=value)


@pytest.mark.parametrize("name", ["quantity", "likes", "low", "name"])
def test_methods_of_a_function(db: harken.Database, name: str) -> None:
    handle = db.function(name)
    calls: list[Callable[[Any], Any]] = [
        lambda value: handle[value],
        lambda value: handle.get(value),
        lambda value: value in handle,
        lambda value: handle(value),
        lambda value: handle(value, value),
        lambda value: handle.update(value),
        lambda value: handle.update([(value, 1)]),
        lambda value: handle.update([(db.variables["a"], value)]),
        lambda value: handle.__setitem__(value, 1),
        lambda value: handle.__setitem__(db.variables["b"], value),
        lambda value: handle.__delitem__(value),
        lambda value: handle.add(value),
        lambda value: handle.add(db.variables["b"], value),
        lambda value: handle.put(value, value),
        lambda value: handle.remove(value, value),
        lambda value: handle.remove(value),
    ]
    for call in calls:
        for value in VALUES:
            wrong(call, value=value)
            with db.transaction():
                wrong(call, value=value)
            assert db.sql("SELECT 1").rows == [(1,)]
    assert list(db.function("quantity"))


def test_methods_of_a_subscription(db: harken.Database) -> None:
    subscription = db.monitor("w", keep=True)
    for value in VALUES:
        wrong(subscription.changes, net=value)
    assert set(public(harken.Subscription)) >= {"changes", "snapshot", "rows", "acknowledge"}
    for name in public(harken.Subscription):
        if name not in ("close", "delete", "changes"):
            wrong(getattr(subscription, name))


@pytest.mark.parametrize("parameter", list(inspect.signature(harken.connect).parameters))
def test_connect(parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in values_for(parameter):
        try:
            harken.connect(**{parameter: value}).close()
        except harken.HarkenError as error:
            error.report().encode()


@pytest.mark.parametrize("parameter", ["seconds", "bytes"])
def test_keep(db: harken.Database, parameter: str) -> None:
    for value in VALUES:
        try:
            keep = harken.Keep(**{parameter: value})
        except harken.HarkenError:
            continue
        db.monitor("w", keep=keep).close()


@pytest.mark.parametrize("parameter", ["address", "token", "timeout"])
def test_client(parameter: str) -> None:
    good = {"address": "http://127.0.0.1:1", "token": None, "timeout": 1.0}
    for value in VALUES:
        try:
            client = harken.Client(**{**good, parameter: value})
            wrong(client.views)
        except harken.HarkenError as error:
            error.report().encode()


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("snapshot", {"view": "v", "where": None, "keep": False}),
        ("changes", {"view": "v", "since": 0, "where": None, "net": False}),
        ("apply", {"insert": {}, "delete": {}}),
        ("sql", {"text": "SELECT 1"}),
        ("follow", {"view": "v", "since": None, "where": None, "every": 0.0}),
        ("follow_all", {"views": ["v"], "since": None, "every": 0.0}),
        ("counts", {"view": "v", "since": None, "where": None, "every": 0.0}),
        ("copy", {"view": "v", "where": None}),
        ("request", {"method": "GET", "path": "/me", "body": None, "headers": None}),
        ("items", {"path": "/users", "limit": 10}),
        ("signal", {"name": "failure"}),
    ],
)
def test_methods_of_a_client(name: str, good: dict[str, Any]) -> None:
    """Nobody listens there: the arguments are looked at before anything is sent."""
    client = harken.Client("http://127.0.0.1:1", timeout=1.0)
    assert set(public(harken.Client)) == {
        *("views", "snapshot", "changes", "apply", "sql", "follow", "follow_all", "counts", "copy"),
        *("request", "items", "signal"),
    }
    for parameter in good:
        for value in VALUES:
            wrong(getattr(client, name), **{**good, parameter: value})


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda db: db.monitor("low", strateg="auto"), "no argument strateg", "mean strategy"),
        (lambda db: db.monitor(), "missing a required argument: 'name'", "monitor(name, listener"),
        (lambda db: db.sql("SELECT 1", 1, 2), "too many positional", "sql(text, values=None)"),
        (lambda db: db.monitor("low").changes(1), "too many positional", "changes(*, net=False)"),
        (lambda db: db.function("quantity").get(), "missing", "get(arguments, default=None)"),
        (lambda db: harken.connect(":memory:", 5), "too many positional", "connect(path="),
        (lambda db: harken.connect(read=True), "no argument read", "connect(path="),
    ],
)
def test_a_call_that_does_not_fit_shows_how_it_is_made(
    db: harken.Database, call: Callable[[harken.Database], object], message: str, hint: str
) -> None:
    with pytest.raises(harken.TypeFault) as caught:
        call(db)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)
