"""Python behind AMOSQL names: functions, bags, several columns and procedures."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import harken
from harken import Database, ForeignFault, HarkenError, Object, SafetyFault, TypeFault

SHOP = """
create type item properties (name charstring, quantity integer, price number);
create type special subtype of item;
create item(name, quantity, price) instances :toy("small toy", 5, 2.5), :book("book", 12, 10);
create item(name) instances :none("none");
commit;
"""

DECLARED = """
create function double(integer n) -> integer as foreign "foreign_functions:double";
create function positive(integer n) -> integer as foreign "foreign_functions:positive";
create function words(charstring s) -> bag of charstring as foreign "foreign_functions:words";
create function up_to(integer n) -> bag of integer as foreign "foreign_functions:up_to";
create function divided(integer n, integer m) -> <integer quotient, integer rest>
    as foreign "foreign_functions:divided";
create function factors(integer n) -> bag of <integer a, integer b>
    as foreign "foreign_functions:factors";
create function answer() -> integer as foreign "foreign_functions:answer";
create function tomorrow(date d) -> date as foreign "foreign_functions:tomorrow";
create function negated(integer n) -> integer as foreign "foreign_functions:Calculator.negated";
create function power2(integer n) -> integer as foreign "operator:index";
commit;
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


def rows(db: Database, text: str) -> list[tuple[Any, ...]]:
    return sorted(db.amosql(text).rows)


# --- declared in AMOSQL --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("double(4);", [(8,)]),
        ("select double(4);", [(8,)]),
        ("select double(quantity(i)) for each item i;", [(10,), (24,)]),
        ("select name(i) for each item i where double(quantity(i)) = 10;", [("small toy",)]),
        ("select double(double(quantity(i))) for each item i;", [(20,), (48,)]),
        ("select sum(select double(quantity(i)) for each item i);", [(34,)]),
        ("positive(-1);", []),
        ("select positive(quantity(i) - 6) for each item i;", [(6,)]),
        ("select count(positive(0)), some(positive(1)), notany(positive(1));", [(0, True, False)]),
        ('words("to be or not to be");', [("be",), ("be",), ("not",), ("or",), ("to",), ("to",)]),
        ("select words(name(i)) for each item i;", [("book",), ("none",), ("small",), ("toy",)]),
        ('select count(words("to be or not to be"));', [(6,)]),
        ("up_to(3);", [(0,), (1,), (2,)]),
        ("up_to(0);", []),
        ("select sum(up_to(5)), max(up_to(5)), count(up_to(0));", [(10, 4, 0)]),
        ("select n for each integer n where n in up_to(3) and n > 0;", [(1,), (2,)]),
        ("divided(17, 5);", [(3, 2)]),
        ("select divided(quantity(i), 5) for each item i;", [(1, 0), (2, 2)]),
        ("factors(6);", [(1, 6), (2, 3), (3, 2), (6, 1)]),
        ("select count(factors(6));", [(4,)]),
        ("answer();", [(42,)]),
        ("select name(i) for each item i where quantity(i) < answer() - 30;", [("small toy",)]),
        ("tomorrow(|2026-12-31|);", [(datetime.date(2027, 1, 1),)]),
        ("select tomorrow(|2026-12-31|) > |2026-12-31|;", [(True,)]),
        ("negated(5);", [(-5,)]),
    ],
)
def test_declared_functions(shop: Database, text: str, expected: list[tuple[Any, ...]]) -> None:
    shop.amosql(DECLARED)
    assert rows(shop, text) == expected


@pytest.mark.parametrize("reopened", [False, True])
def test_declared_functions_are_found_again(path: str, reopened: bool) -> None:
    with harken.connect(path) as db:
        db.amosql(SHOP + DECLARED)
        db.amosql("create function quadruple(integer n) -> integer as select double(double(n));")
        db.amosql("""
            create function store(item i, integer n) -> boolean as set quantity(i) = double(n);
        """)
    with harken.connect(path, read_only=reopened) as db:
        assert rows(db, "double(4);") == [(8,)]
        assert rows(db, "select double(quantity(i)) for each item i;") == [(10,), (24,)]
        assert rows(db, "quadruple(3);") == [(12,)]
        assert rows(db, "factors(4);") == [(1, 4), (2, 2), (4, 1)]
        if not reopened:
            db.amosql("for each item i do store(i, 7);")
            assert rows(db, "select quantity(i) for each item i;") == [(14,)]


def test_a_database_opens_though_its_python_is_gone(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs the missing function fails when it is used, and says how to mend it."""
    import foreign_functions

    monkeypatch.setattr(foreign_functions, "vanishing", foreign_functions.double, raising=False)
    with harken.connect(path) as db:
        db.amosql(SHOP)
        db.amosql(
            'create function f(integer n) -> integer as foreign "foreign_functions:vanishing";'
        )
        assert rows(db, "f(1);") == [(2,)]
    monkeypatch.delattr(foreign_functions, "vanishing")
    with harken.connect(path) as db:
        assert rows(db, "select quantity(i) for each item i;") == [(5,), (12,)]
        for text in ("f(1);", "select f(1);", "select f(quantity(i)) for each item i;"):
            with pytest.raises(ForeignFault) as caught:
                db.amosql(text)
            assert "foreign_functions:vanishing" in caught.value.message
            assert caught.value.hint
        db.foreign("f", lambda n: n + 1)
        assert rows(db, "select f(quantity(i)) for each item i;") == [(6,), (13,)]


def test_a_definition_can_be_replaced_and_the_replacement_undone(shop: Database) -> None:
    shop.amosql(DECLARED)
    assert rows(shop, "select double(4);") == [(8,)]
    shop.amosql(
        'create function double(integer n) -> integer as foreign "foreign_functions:triple";'
    )
    assert rows(shop, "select double(4);") == [(12,)]
    assert rows(shop, "double(4);") == [(12,)]
    shop.rollback()
    assert rows(shop, "select double(4);") == [(8,)]
    assert rows(shop, "double(4);") == [(8,)]


def test_a_deleted_declaration_can_come_back(shop: Database) -> None:
    shop.amosql(DECLARED)
    shop.amosql("delete function double;")
    with pytest.raises(harken.NameFault):
        shop.amosql("double(4);")
    shop.rollback()
    assert rows(shop, "select double(quantity(i)) for each item i;") == [(10,), (24,)]


def test_a_declaration_that_is_undone_is_gone(shop: Database) -> None:
    shop.amosql(DECLARED.replace("commit;", ""))
    assert rows(shop, "double(4);") == [(8,)]
    shop.rollback()
    with pytest.raises(harken.NameFault):
        shop.amosql("double(4);")


def test_handles_on_foreign_functions(shop: Database) -> None:
    shop.amosql(DECLARED)
    assert shop.function("double")(4) == [8]
    assert sorted(shop.function("words")["a b a"]) == ["a", "a", "b"]
    assert shop.function("divided")(17, 5) == [(3, 2)]
    assert shop.function("answer")() == [42]
    assert shop.function("tomorrow")(datetime.date(2026, 1, 1)) == [datetime.date(2026, 1, 2)]
    with pytest.raises(SafetyFault):
        shop.function("double")[4] = 9
    with pytest.raises(SafetyFault):
        list(shop.function("double").items())


def test_a_foreign_function_needs_its_arguments(shop: Database) -> None:
    shop.amosql(DECLARED)
    with pytest.raises(SafetyFault) as caught:
        shop.amosql("select n for each integer n where double(n) = 4;")
    assert caught.value.code == "unsafe"


def test_a_declared_function_is_checked_like_any_other(shop: Database) -> None:
    shop.amosql(DECLARED)
    for text, code in [
        ('double("x");', "type-mismatch"),
        ("double(1, 2);", "arity"),
        ("set double(1) = 2;", "not-updatable"),
        ("duble(1);", "unknown-function"),
    ]:
        with pytest.raises(HarkenError) as caught:
            shop.amosql(text)
        assert caught.value.code == code


# --- registered from Python ----------------------------------------------------------------


def add(x: int, y: int) -> int:
    return x + y


def halved(n: int) -> float | None:
    return n / 2 if n > 5 else None


def letters(text: str) -> list[str]:
    return list(text)


def counted(text: str) -> Iterator[tuple[str, int]]:
    for letter in sorted(set(text)):
        yield letter, text.count(letter)


def span(n: int) -> tuple[int, float]:
    return n, n / 2


def shown(item: Object) -> str:
    return repr(item)


def is_large(n: int) -> bool:
    return n > 10


def noon(day: datetime.date) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, 12, tzinfo=datetime.UTC)


def constant() -> str:
    return "always"


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        (add, "select f(quantity(i), 1) for each item i;", [(6,), (13,)]),
        (add, "f(1, 2);", [(3,)]),
        (halved, "select f(quantity(i)) for each item i;", [(6.0,)]),
        (letters, 'f("aab");', [("a",), ("a",), ("b",)]),
        (letters, 'select count(f("aab"));', [(3,)]),
        (counted, 'f("aab");', [("a", 2), ("b", 1)]),
        (
            counted,
            "select f(name(i)) for each item i where quantity(i) = 12;",
            [("b", 1), ("k", 1), ("o", 2)],
        ),
        (span, "select f(quantity(i)) for each item i;", [(5, 2.5), (12, 6.0)]),
        (is_large, "select name(i) for each item i where f(quantity(i));", [("book",)]),
        (
            is_large,
            "select name(i) for each item i where f(quantity(i)) = false;",
            [("small toy",)],
        ),
        (noon, "f(|2026-11-15|);", [(datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC),)]),
        (constant, "f();", [("always",)]),
        (constant, 'select f() + "!";', [("always!",)]),
    ],
)
def test_annotations_are_a_signature(
    shop: Database, function: Callable[..., Any], text: str, expected: list[tuple[Any, ...]]
) -> None:
    shop.foreign("f", function)
    assert rows(shop, text) == expected


def test_objects_come_as_handles_of_their_own_type(shop: Database) -> None:
    shop.amosql("create special instances :gift;")
    shop.foreign("shown", shown)
    gift, toy = shop.variables["gift"], shop.variables["toy"]
    assert rows(shop, "shown(:gift);") == [(f"#[special {gift.oid}]",)]
    assert (f"#[item {toy.oid}]",) in rows(shop, "select shown(i) for each item i;")


def test_objects_can_be_given_back(shop: Database) -> None:
    toy = shop.variables["toy"]
    shop.amosql("create function best(integer n) -> item as foreign;")
    shop.foreign("best", lambda n: toy)
    assert rows(shop, "select name(best(1));") == [("small toy",)]
    assert rows(shop, "best(1);") == [(toy,)]
    shop.foreign("best", lambda n: "toy")
    with pytest.raises(ForeignFault):
        shop.amosql("select name(best(1));")


def test_registering_again_replaces(shop: Database) -> None:
    shop.foreign("f", add)
    assert rows(shop, "select f(1, 2);") == [(3,)]

    def subtract(x: int, y: int) -> int:
        return x - y

    shop.foreign("f", subtract)
    assert rows(shop, "select f(1, 2);") == [(-1,)]
    assert rows(shop, "f(1, 2);") == [(-1,)]

    def other(x: str) -> str:
        return x * 2

    shop.foreign("f", other)
    assert rows(shop, 'f("a");') == [("aa",)]


def test_registering_gives_a_declared_function_its_python(shop: Database) -> None:
    shop.amosql("create function rate(charstring c) -> number as foreign;")
    shop.amosql('create function total(item i) -> number as select price(i) * rate("SEK"); commit;')
    shop.foreign("rate", lambda currency: {"SEK": 10}.get(currency))
    assert rows(shop, "select total(i) for each item i;") == [(25.0,), (100.0,)]
    shop.foreign("rate", lambda currency: 2.0)
    assert rows(shop, "select total(i) for each item i;") == [(5.0,), (20.0,)]
    shop.amosql("create type other; rollback;")
    assert rows(shop, "select total(i) for each item i;") == [(5.0,), (20.0,)]


def test_what_a_session_registered_is_not_in_the_database(path: str) -> None:
    with harken.connect(path) as db:
        db.foreign("f", add)
        assert rows(db, "f(1, 2);") == [(3,)]
    with harken.connect(path) as db, pytest.raises(harken.NameFault):
        db.amosql("f(1, 2);")


def test_a_definition_built_on_what_only_a_session_has(path: str) -> None:
    """It works again in a session that registers the function, and says so in others."""
    with harken.connect(path) as db:
        db.foreign("f", add)
        db.amosql("create function g(integer n) -> integer as select f(n, 1);")
        assert rows(db, "g(1);") == [(2,)]
    with harken.connect(path) as db:
        with pytest.raises(harken.NameFault) as caught:
            db.amosql("1; g(1);")
        assert caught.value.code == "unknown-function"
        assert caught.value.span is not None
        assert caught.value.text is not None
        shown = caught.value.text[caught.value.span.start : caught.value.span.end]
        assert shown in ("g(1)", "f(n, 1)")
        db.foreign("f", add)
        assert rows(db, "g(1);") == [(2,)]


@pytest.mark.parametrize(
    ("name", "function", "code"),
    [
        ("name", add, "exists"),
        ("count", add, "exists"),
        ("abs", add, "exists"),
        ("print", add, "exists"),
        ("two words", add, "bad-name"),
        ("", add, "bad-name"),
        (5, add, "type-mismatch"),
        ("f", 5, "foreign"),
        ("f", None, "foreign"),
    ],
)
def test_what_cannot_be_registered(shop: Database, name: str, function: Any, code: str) -> None:
    with pytest.raises(HarkenError) as caught:
        shop.foreign(name, function)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    "function",
    [
        max,
        int,
        "x".join,
        print,
        lambda *values: None,
        type("Callable", (), {"__call__": lambda self, x: x})(),
    ],
    ids=["max", "int", "bound", "print", "lambda", "instance"],
)
def test_anything_callable_can_be_registered(shop: Database, function: Any) -> None:
    shop.foreign("f", function)


def test_built_in_python_functions_as_procedures(shop: Database) -> None:
    seen: list[Any] = []
    shop.foreign("keep", seen.append)
    shop.amosql("for each item i where quantity(i) > 0 do keep(name(i));")
    assert sorted(seen) == ["book", "small toy"]


# --- procedures ----------------------------------------------------------------------------


def test_a_procedure_takes_any_values(shop: Database) -> None:
    calls: list[tuple[Any, ...]] = []
    shop.foreign("note", lambda *values: calls.append(values))
    toy = shop.variables["toy"]
    shop.amosql('note(); note(1, 2.5, "x", true, |2026-11-15|, :toy);')
    shop.amosql("call note(quantity(:toy) + 1);")
    shop.amosql("for each item i where quantity(i) > 10 do note(i, name(i));")
    assert calls == [
        (),
        (1, 2.5, "x", True, datetime.date(2026, 11, 15), toy),
        (6,),
        (shop.variables["book"], "book"),
    ]


def test_a_procedure_is_called_once_for_each_row_of_its_arguments(shop: Database) -> None:
    calls: list[Any] = []
    shop.foreign("note", calls.append)
    shop.amosql("note(select quantity(i) for each item i);")
    assert sorted(calls) == [5, 12]
    calls.clear()
    shop.amosql("note(quantity(:none));")
    assert calls == []


def test_a_procedure_in_a_procedure(shop: Database) -> None:
    orders: list[tuple[Object, int]] = []
    shop.amosql("create function order(item i, integer n) -> boolean as foreign;")
    shop.foreign("order", lambda item, n: orders.append((item, n)))
    shop.amosql("""
        create function refill(integer least) -> boolean as begin
            for each item i where quantity(i) < least do begin
                order(i, least - quantity(i));
                set quantity(i) = least;
            end;
        end;
        refill(10);
        commit;
    """)
    assert orders == [(shop.variables["toy"], 5)]
    assert rows(shop, "select quantity(i) for each item i;") == [(10,), (12,)]


def test_a_procedure_cannot_be_part_of_a_query(shop: Database) -> None:
    called: list[Any] = []
    shop.foreign("note", called.append)
    with pytest.raises(SafetyFault) as caught:
        shop.amosql("select note(quantity(i)) for each item i;")
    assert caught.value.code == "side-effect"
    assert called == []


def test_a_procedure_may_use_the_database(shop: Database) -> None:
    def sell(item: Object, n: int) -> None:
        quantity = shop.function("quantity")
        if quantity[item] < n:
            raise ValueError("sold out")
        quantity[item] -= n
        shop.amosql("create special instances :receipt;")

    shop.foreign("sell", sell)
    shop.amosql("sell(:toy, 3);")
    assert rows(shop, "quantity(:toy);") == [(2,)]
    assert rows(shop, "select count(select s for each special s);") == [(1,)]
    with pytest.raises(ForeignFault):
        shop.amosql("begin sell(:book, 2); sell(:toy, 3); end;")
    assert rows(shop, "select quantity(i) for each item i;") == [(2,), (12,)]
    shop.rollback()
    assert rows(shop, "select quantity(i) for each item i;") == [(5,), (12,)]


def test_a_function_may_ask_the_database(shop: Database) -> None:
    def rank(n: int) -> int:
        return shop.amosql("select count(select i for each item i);").rows[0][0] * n

    shop.foreign("rank", rank)
    assert rows(shop, "select rank(quantity(i)) for each item i;") == [(15,), (36,)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda db: db.amosql("set quantity(:toy) = 1;"),
        lambda db: db.amosql('create item(name, quantity) instances :new("new", 1);'),
        lambda db: db.amosql("create type fresh;"),
        lambda db: db.function("quantity").__setitem__(db.variables["toy"], 1),
        lambda db: db.function("quantity").__delitem__(db.variables["toy"]),
        lambda db: db.load("item", [("new", 1)], ["name", "quantity"]),
        lambda db: db.transaction().__enter__(),
        lambda db: db.commit() if db.in_transaction else db.amosql("delete :toy;"),
        lambda db: db.amosql("rollback;") if db.in_transaction else db.amosql("delete :toy;"),
        lambda db: db.close(),
    ],
)
def test_a_function_in_a_query_cannot_change_the_database(
    shop: Database, change: Callable[[Database], Any], in_transaction: bool
) -> None:
    def changes(n: int) -> int:
        change(shop)
        return n

    shop.foreign("changes", changes)
    if in_transaction:
        shop.amosql("set quantity(:book) = 13;")
    before = rows(shop, "select name(i), quantity(i) for each item i;")
    with pytest.raises(HarkenError) as caught:
        shop.amosql("select changes(quantity(i)) for each item i;")
    assert caught.value.code in ("side-effect", "transaction")
    assert caught.value.hint
    assert rows(shop, "select name(i), quantity(i) for each item i;") == before
    assert shop.in_transaction == in_transaction
    shop.rollback()
    assert rows(shop, "select quantity(i) for each item i;") == [(5,), (12,)]


def test_results_of_a_function_called_as_a_statement_are_shown(shop: Database) -> None:
    shop.amosql(DECLARED)
    told: list[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]] = []
    shop.run_program(
        "amosql", "divided(7, 2); double(2);", lambda r: told.append((r.kind, r.columns, r.rows))
    )
    assert told == [
        ("rows", ("quotient", "rest"), [(3, 1)]),
        ("rows", ("integer",), [(4,)]),
    ]


@pytest.mark.parametrize(
    "produced", [[1, 2, 2], {1, 2}, (1, 2), iter([1, 2]), range(1, 3), {1: "a", 2: "b"}]
)
def test_a_bag_may_be_any_iterable(shop: Database, produced: Iterable[int]) -> None:
    shop.amosql("create function some_of() -> bag of integer as foreign;")
    shop.foreign("some_of", lambda: produced)
    assert set(rows(shop, "select some_of();")) == {(1,), (2,)}


def test_texts_are_not_bags_of_letters(shop: Database) -> None:
    shop.amosql("create function all_of() -> bag of charstring as foreign;")
    shop.foreign("all_of", lambda: "abc")
    try:
        found = rows(shop, "select all_of();")
    except ForeignFault:
        return
    assert found == [("abc",)]


# --- interface variables from Python -------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        5,
        -(2**63),
        2.5,
        "text",
        True,
        datetime.date(2026, 1, 1),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    ],
)
def test_variables_can_be_given_from_python(shop: Database, value: Any) -> None:
    shop.assign("x", value)
    assert shop.amosql("select :x;").rows == [(value,)]
    assert shop.variables["x"] == value


def test_a_variable_that_holds_an_object(shop: Database) -> None:
    (new,) = shop.load("item", [("new",)], ["name"])
    shop.assign(":fresh", new)
    assert rows(shop, "select name(:fresh);") == [("new",)]
    assert [r.lines() for r in shop.amosql("select :fresh;")] == [["<:fresh>"]]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1],
        {"a": 1},
        b"x",
        2**63,
        float("nan"),
        float("inf"),
        1j,
        "a\0b",
        datetime.datetime(2026, 1, 1),
    ],
)
def test_values_that_the_language_does_not_have_are_refused(shop: Database, value: Any) -> None:
    with pytest.raises(HarkenError) as caught:
        shop.assign("x", value)
    assert caught.value.code in ("bad-value", "overflow", "type-mismatch")
    assert "x" not in shop.variables


def test_variables_cannot_be_changed_behind_the_session(shop: Database) -> None:
    with pytest.raises(TypeError):
        shop.variables["x"] = 5  # type: ignore[index]


def test_an_overloaded_name_may_mix_python_and_amosql(shop: Database) -> None:
    shop.amosql("create function price_of(item i) -> number as select price(i);")
    shop.amosql(
        'create function price_of(charstring c) -> integer as foreign "foreign_functions:double";'
    )
    assert rows(shop, "price_of(:toy);") == [(2.5,)]
    with pytest.raises((ForeignFault, TypeFault)):
        shop.amosql('price_of("x");')
