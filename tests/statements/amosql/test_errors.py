"""Each error has its code, its place in the text and a way out, and leaves everything as it was.

In a script below, `«` stands right before the place that the error must point to.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import (
    ArithmeticFault,
    Database,
    EvaluationError,
    ForeignFault,
    HarkenError,
    IntegrityError,
    LanguageError,
    NameFault,
    SafetyFault,
    StorageError,
    SyntaxFault,
    TypeFault,
    ValueFault,
    errors,
)

SHOP = """
create type item properties (name charstring, quantity integer, price number);
create type supplier;
create type red subtype of item;
create type round subtype of item;
create type ball subtype of red, round;
create function weight(item) -> integer;
create function label(red) -> charstring;
create function label(round) -> charstring;
create function delivery(item, supplier) -> integer;
create function tags(item) -> bag of charstring;
create function size(item) -> <integer width, number height>;
create function twice(item i) -> integer as select quantity(i) * 2;
create function cost(item i) -> number as select quantity(i) * price(i);
create function restock(item i) -> boolean as begin set quantity(i) = 100; end;
create function inverse(item i) -> number as select 1 / quantity(i);
create item(name, quantity, price) instances :toy("toy", 5, 2.5), :book("book", 50, 10);
create item(name, quantity) instances :none("none", 0);
create ball instances :ball;
create supplier instances :acme;
set weight(:toy) = 9223372036854775807;
set weight(:book) = -9223372036854775808;
set tags(:toy) = "a";
commit;
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


def state(db: Database) -> Any:
    """All that a wrong program could have changed."""
    tables = [
        name
        for (name,) in db.internals.connection.raw.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'harken_meta'"
        )
    ]
    rows = {
        name: db.internals.connection.raw.execute(f'SELECT * FROM "{name}"').fetchall()
        for name in tables
    }
    return rows, dict(db.variables), db.in_transaction


def fail(db: Database, marked: str) -> HarkenError:
    """Run a wrong script; assert that it changed nothing and that the error points to the mark."""
    before = state(db)
    text = marked.replace("«", "")
    with pytest.raises(HarkenError) as caught:
        db.amosql(text)
    error = caught.value
    assert state(db) == before
    assert error.text == text
    if "«" in marked:
        lines = marked[: marked.index("«")].split("\n")
        assert (error.line, error.column) == (len(lines), len(lines[-1]) + 1), error.report()
    assert error.headline("a.amosql").startswith(f"a.amosql:{error.line}:{error.column}: [")
    assert "^" in error.report()
    return error


FIRST = "set quantity(:toy) = 1;\ncreate type fresh;\n"
"""Goes before each wrong statement: it must be undone, and the lines counted."""


def case(script: str, kind: type[HarkenError], code: str, message: str = "", hint: str = "") -> Any:
    """`message` and `hint` are parts of what the error must say."""
    return pytest.param(
        script, kind, code, message, hint, id=f"{code}: {script.replace('«', '')}"[:60]
    )


def check(
    db: Database, script: str, kind: type[HarkenError], code: str, message: str, hint: str
) -> None:
    error = fail(db, FIRST + script)
    assert type(error) is kind
    assert error.code == code
    assert message in error.message
    if hint:
        assert error.hint is not None
        assert hint in error.hint
    assert "apsw" not in error.report()
    assert "sqlite" not in error.report().lower()


# --- the text is wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case("select 1 +«;", SyntaxFault, "syntax", hint="for example"),
        case("set quantity(:toy = 5«;", SyntaxFault, "syntax", hint="close it"),
        case('print(«"never closed);', SyntaxFault, "syntax"),
        case("«/* never closed", SyntaxFault, "syntax"),
        case(
            "set quantity(:toy) = 5«\nset price(:toy) = 1;",
            SyntaxFault,
            "missing-semicolon",
            hint=";",
        ),
        case("create type a«\ncreate type b;", SyntaxFault, "missing-semicolon", "create"),
        case("select «9223372036854775808;", SyntaxFault, "overflow", "64 bits", "real"),
    ],
)
def test_syntax(shop: Database, script: str, kind: Any, code: str, message: str, hint: str) -> None:
    check(shop, script, kind, code, message, hint)


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case("select «quantty(:toy);", NameFault, "unknown-function", "quantty", "quantity"),
        case("select «zzzzzz(:toy);", NameFault, "unknown-function", "zzzzzz", "create function"),
        case("set «quantty(:toy) = 5;", NameFault, "unknown-function", "quantty", "quantity"),
        case("select 1 + «summ(:toy);", NameFault, "unknown-function", "summ", "sum"),
        case("«delete function twise;", NameFault, "unknown-function", "twise", "twice"),
        case(
            "select «supplier.name(:toy);", NameFault, "unknown-function", "supplier", "name(item)"
        ),
        case("select name(i) for each «itm i;", NameFault, "unknown-type", "itm", "item"),
        case("«create itm instances :x;", NameFault, "unknown-type", "itm", "item"),
        case("«create type t subtype of itm;", NameFault, "unknown-type", "itm", "item"),
        case("create function f(«itm) -> integer;", NameFault, "unknown-type", "itm", "item"),
        case("create function f(item) -> «integr;", NameFault, "unknown-type", "integr", "integer"),
        case(
            "create type t properties («a integr);", NameFault, "unknown-type", "integr", "integer"
        ),
        case("«delete type itm;", NameFault, "unknown-type", "itm", "item"),
        case("«add itm to :toy;", NameFault, "unknown-type", "itm", "item"),
        case("select name(«:toi);", NameFault, "unknown-variable", ":toi", ":toy"),
        case("select name(«:zzzzzz);", NameFault, "unknown-variable", ":zzzzzz", "instances"),
        case("select name(«itm) for each item it;", NameFault, "unknown-variable", "itm", "it"),
        case("select «quantity;", NameFault, "unknown-variable", "quantity", "quantity(...)"),
        case("begin set «x = 5; end;", NameFault, "unknown-variable", "x", "declare"),
        case(
            "create function f() -> charstring as select name(«:toy);",
            NameFault,
            "unknown-variable",
            ":toy",
            "parameter",
        ),
        case("«create type item;", NameFault, "exists", "item", "another name"),
        case("«create type integer;", NameFault, "exists", "integer"),
        case(f"«create type {'t' * 201};", NameFault, "bad-name", "200", "shorter"),
        case(f"«create function {'f' * 201}() -> item;", NameFault, "bad-name", "200", "shorter"),
        case(
            "«create function quantity(item) -> number;",
            NameFault,
            "exists",
            "quantity(item)",
            "delete",
        ),
        case(
            "«create function count(item) -> integer;", NameFault, "exists", "count", "another name"
        ),
        case("create type t properties (a integer, «a integer);", NameFault, "exists", "a(t)"),
    ],
)
def test_names(shop: Database, script: str, kind: Any, code: str, message: str, hint: str) -> None:
    check(shop, script, kind, code, message, hint)


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case('set quantity(:toy) = «"five";', TypeFault, "type-mismatch", "integer is needed"),
        case("set name(:toy) = «5;", TypeFault, "type-mismatch", "charstring is needed"),
        case("set quantity(:toy) = «2.5;", TypeFault, "type-mismatch", "integer is needed"),
        case("select «quantity(:acme);", TypeFault, "type-mismatch", "supplier", "quantity(item)"),
        case("set «quantity(:acme) = 5;", TypeFault, "type-mismatch", "supplier", "quantity(item)"),
        case("select «twice(5);", TypeFault, "type-mismatch", "integer", "twice(item)"),
        case('select «"a" + 1;', TypeFault, "type-mismatch", "`+`", "it takes"),
        case("select «upper(5);", TypeFault, "type-mismatch", "upper", "it takes"),
        case("select «sum(select name(i) for each item i);", TypeFault, "type-mismatch", "sum"),
        case(
            "select i for each item i where «name(i) = 5;", TypeFault, "type-mismatch", "compared"
        ),
        case(
            "select i for each item i where «quantity(i);",
            TypeFault,
            "type-mismatch",
            "true or false",
        ),
        case("if «1 then print(1);", TypeFault, "type-mismatch", "true or false", "some"),
        case("delete «5;", TypeFault, "type-mismatch", "object"),
        case("«create integer instances :x;", TypeFault, "type-mismatch", "integer"),
        case("«create type t subtype of integer;", TypeFault, "type-mismatch", "subtypes"),
        case(
            "create function f(item i) -> integer as «select name(i);",
            TypeFault,
            "type-mismatch",
            "charstring",
            "declared result",
        ),
        case("select «name();", TypeFault, "arity", "1 argument", "name(item)"),
        case("select «name(:toy, :book);", TypeFault, "arity", "1 argument", "name(item)"),
        case(
            "set «delivery(:toy) = 1;", TypeFault, "arity", "2 arguments", "delivery(item,supplier)"
        ),
        case("«restock(:toy, 5);", TypeFault, "arity", "1 argument", "restock(item)"),
        case('create item(name, quantity) instances «:x("x");', TypeFault, "arity", "2 properties"),
        case("set size(:toy) = «5;", TypeFault, "arity", "2 values"),
        case("set size(:toy) = «<1, 2, 3>;", TypeFault, "arity", "2 values"),
        case(
            "create function f(item i) -> integer as «select quantity(i), 5;",
            TypeFault,
            "arity",
            "1 result column",
        ),
        case("select «label(:ball);", TypeFault, "ambiguous", "label(red)", "red.label"),
        case(
            "select «label(b) for each ball b;", TypeFault, "ambiguous", "label(round)", "red.label"
        ),
        case('set «label(:ball) = "x";', TypeFault, "ambiguous", "label(round)", "dot"),
        case("«delete function label;", TypeFault, "ambiguous", "label(red)", "red.label"),
        case("select arguments(«#'label');", TypeFault, "ambiguous", "label(red)", "red.label"),
        case("create function f(item i, «item i) -> integer;", TypeFault, "exists", "i"),
    ],
)
def test_types(shop: Database, script: str, kind: Any, code: str, message: str, hint: str) -> None:
    check(shop, script, kind, code, message, hint)


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case("«select n for each integer n;", SafetyFault, "unsafe", "n (integer)", "="),
        case("select n for each integer n where «n > 5;", SafetyFault, "unsafe", "infinite"),
        case(
            "select i for each item i, integer n where not «quantity(i) = n;", SafetyFault, "unsafe"
        ),
        case("«create function f(item i) -> integer n as select n;", SafetyFault, "unsafe", "n"),
        case(
            "create function odd(item i) -> boolean as select true where «notany(odd(i));",
            SafetyFault,
            "not-stratified",
            "odd",
            "inner part",
        ),
        case(
            "set «cost(:toy) = 5;", SafetyFault, "not-updatable", "cost(item)", "stored functions"
        ),
        case("set «name(#'twice') = \"x\";", SafetyFault, "not-updatable", "catalog"),
        case(
            "select «restock(i) for each item i;",
            SafetyFault,
            "side-effect",
            "restock",
            "statement",
        ),
        case(
            "create function p() -> boolean as begin «commit; end;",
            SafetyFault,
            "side-effect",
            "`commit` is not allowed inside a procedure",
            "outside the procedure",
        ),
        case(
            "create rule r() as when for each item i where quantity(i) < 5 do begin «commit; end;",
            SafetyFault,
            "side-effect",
            "`commit` is not allowed inside a rule's action",
            "outside the rule's action",
        ),
        case(
            "create function p() -> boolean as begin «create type t; end;",
            SyntaxFault,
            "syntax",
            "inside another statement",
        ),
        case("«return 5;", SafetyFault, "side-effect", "procedure"),
    ],
)
def test_safety(shop: Database, script: str, kind: Any, code: str, message: str, hint: str) -> None:
    check(shop, script, kind, code, message, hint)


# --- the data is wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case("«select 1 / 0;", ArithmeticFault, "division-by-zero", hint="condition"),
        case("«select 1.5 / 0.0;", ArithmeticFault, "division-by-zero"),
        case("«select div(1, 0);", ArithmeticFault, "division-by-zero"),
        case("«select mod(1, 0);", ArithmeticFault, "division-by-zero"),
        case("«select 1 / quantity(i) for each item i;", ArithmeticFault, "division-by-zero"),
        case("«select inverse(i) for each item i;", ArithmeticFault, "division-by-zero"),
        case("«set quantity(:toy) = div(1, quantity(:none));", ArithmeticFault, "division-by-zero"),
        case("«select weight(:toy) + 1;", ArithmeticFault, "overflow", "64 bits", "number"),
        case("«select weight(:book) - 1;", ArithmeticFault, "overflow"),
        case("«select weight(:toy) * 2;", ArithmeticFault, "overflow"),
        case("«select -weight(:book);", ArithmeticFault, "overflow"),
        case("«select abs(weight(:book));", ArithmeticFault, "overflow"),
        case("«select div(weight(:book), -1);", ArithmeticFault, "overflow"),
        case("«select weight(:toy) + 1 - 1;", ArithmeticFault, "overflow"),
        case("«select 9223372036854775807 + 1;", ArithmeticFault, "overflow"),
        case(
            "«select sum(select 9223372036854775807 for each item i);", ArithmeticFault, "overflow"
        ),
        case("«set quantity(:toy) = weight(:toy) + quantity(:toy);", ArithmeticFault, "overflow"),
        case("«for each item i do set weight(i) = weight(i) * 2;", ArithmeticFault, "overflow"),
        case("«select round(1e300);", ArithmeticFault, "overflow"),
        case("«select 1e308 * 10;", ArithmeticFault, "overflow"),
        case("«select 1e308 * 10 - 1e308 * 10;", ArithmeticFault, "overflow"),
        case("«select power(10.0, 400);", ArithmeticFault, "overflow"),
        case("«select |2026-11-15| + 99999999;", ValueFault, "overflow", "years"),
        case("«select sqrt(-1);", ArithmeticFault, "bad-value", "negative"),
        case('«select to_integer("many");', ValueFault, "bad-value", "many"),
        case('«select to_date("someday");', ValueFault, "bad-value", "someday"),
        case("«set :x = weight(:none);", ValueFault, "no-value", ":x"),
        case("«set :x = select name(i) for each item i;", ValueFault, "many-values", ":x"),
        case(
            "«set quantity(:toy) = select quantity(i) for each item i;",
            ValueFault,
            "many-values",
            "one value",
            "bag",
        ),
        case("«add quantity(:toy) = 6;", ValueFault, "many-values", "already", "set"),
        case("delete :toy; select name(«:toy);", ValueFault, "wrong-object", "deleted"),
        case("«begin delete :toy; set quantity(:toy) = 5; end;", ValueFault, "wrong-object"),
    ],
)
def test_data(shop: Database, script: str, kind: Any, code: str, message: str, hint: str) -> None:
    check(shop, script, kind, code, message, hint)


def test_an_object_of_two_types_makes_a_call_ambiguous_when_it_turns_up(shop: Database) -> None:
    shop.amosql("create function label(item i) -> charstring as select name(i); commit;")
    error = fail(shop, "create type fresh;\n«select label(i) for each item i;")
    assert isinstance(error, EvaluationError)
    assert error.code == "ambiguous"
    assert "label(red)" in error.message
    assert error.hint


def test_a_recursion_that_makes_new_values_for_ever_is_refused_or_stopped(shop: Database) -> None:
    error = fail(
        shop, "create function up(integer n) -> integer as select up(n + 1);\nselect up(1);"
    )
    assert error.code in ("unsafe", "no-fixpoint")
    assert error.hint


def test_procedures_that_call_each_other_for_ever_are_stopped(shop: Database) -> None:
    error = fail(
        shop,
        """
        create function again(item i) -> boolean as begin
            set quantity(i) = quantity(i) + 1;
            again(i);
        end;
        «again(:toy);""",
    )
    assert error.code == "no-fixpoint"
    assert "again" in error.message
    assert error.hint


# --- guards --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "select name(i) for each item i where quantity(i) != 0 and 60 / quantity(i) > 2;",
        "select name(i) for each item i where 60 / quantity(i) > 2 and quantity(i) != 0;",
        "select name(i) for each item i where quantity(i) > 0 and div(60, quantity(i)) > 2;",
        "select name(i) for each item i where quantity(i) > 0 and mod(61, quantity(i)) = 1;",
        "select name(i) for each item i where not quantity(i) = 0 and 60 / quantity(i) > 2;",
        "select name(i) for each item i where not (quantity(i) = 0 or 60 / quantity(i) <= 2);",
        "select name(i) for each item i where quantity(i) != 0 and inverse(i) > 0.1;",
        "select name(i) for each item i where inverse(i) > 0.1 and quantity(i) != 0;",
        """select name(i) for each item i, number x
           where quantity(i) != 0 and x = 1 / quantity(i) and x > 0.1;""",
    ],
)
def test_a_guard_keeps_the_zeros_away(shop: Database, query: str) -> None:
    assert shop.amosql(query).rows == [("toy",)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "select name(i), 60 / quantity(i) for each item i where quantity(i) > 5;",
            [("book", 1.2)],
        ),
        ("select sum(select 100 / quantity(i) for each item i where quantity(i) != 0);", [(22.0,)]),
        (
            "select max(select div(100, quantity(i)) for each item i where quantity(i) != 0);",
            [(20,)],
        ),
        ("select weight(i) + 1 for each item i where weight(i) < 0;", [(-9223372036854775807,)]),
        ('select inverse(i) for each item i where name(i) = "toy";', [(0.2,)]),
        (
            "select some(select i for each item i where quantity(i) != 0 and 1 / quantity(i) > 0);",
            [(True,)],
        ),
    ],
)
def test_what_a_condition_leaves_out_is_not_computed(
    shop: Database, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert shop.amosql(query).rows == rows


# --- what is there is in use ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "kind", "code", "message", "hint"),
    [
        case("«delete type item;", IntegrityError, "in-use", "item", "delete those first"),
        case("«delete type integer;", IntegrityError, "in-use", "built in"),
        case("«delete type object;", IntegrityError, "in-use", "built in"),
        case(
            "«delete function quantity;",
            IntegrityError,
            "in-use",
            "twice(item)",
            "delete those first",
        ),
        case("«delete function typesof;", IntegrityError, "in-use", "built in"),
        case("«add type to :toy;", IntegrityError, "in-use", "type", "create type"),
        case("«remove object from :toy;", IntegrityError, "in-use", "object", "create type"),
        case("«for each type t do delete t;", IntegrityError, "in-use", "types"),
        case("«for each function f do delete f;", IntegrityError, "in-use", "function"),
    ],
)
def test_integrity(
    shop: Database, script: str, kind: Any, code: str, message: str, hint: str
) -> None:
    check(shop, script, kind, code, message, hint)


def test_a_new_overload_must_not_break_what_calls_the_name(shop: Database) -> None:
    shop.amosql("""
        create function shown(round r) -> charstring as select round.label(r);
        create function mark(red) -> charstring;
        create function marked(ball b) -> charstring as select mark(b);
        commit;
    """)
    error = fail(shop, "create type fresh;\n«create function mark(round) -> charstring;")
    assert isinstance(error, IntegrityError)
    assert error.code == "in-use"
    assert "marked(ball)" in error.message
    assert error.hint


# --- foreign functions ---------------------------------------------------------------------


def declared(target: str, result: str = "integer", arguments: str = "integer n") -> str:
    return f'create function broken({arguments}) -> {result} as «foreign "{target}";'


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("no_such_module:f", "no_such_module", "imported"),
        ("broken_functions:missing", "missing", "imported"),
        ("broken_functions", "does not name", "module:function"),
        (":f", "does not name", "module:function"),
        ("broken_functions:not_a_function", "not a function", ""),
        ("math:pi", "not a function", ""),
    ],
)
def test_a_foreign_function_that_is_not_there(
    shop: Database, target: str, message: str, hint: str
) -> None:
    check(shop, declared(target), ForeignFault, "foreign", message, hint)


@pytest.mark.parametrize(
    "call",
    ["«broken({n});", "«select broken({n});", "«select broken(quantity(i)) for each item i;"],
)
@pytest.mark.parametrize(
    ("target", "result", "message"),
    [
        ("broken_functions:raises", "integer", "ValueError: cannot do"),
        ("broken_functions:raises_on_the_way", "bag of integer", "RuntimeError: halfway"),
        ("broken_functions:gives_text", "integer", "is not of type integer"),
        ("broken_functions:gives_a_huge_integer", "integer", "64 bits"),
        ("broken_functions:gives_nan", "number", "number"),
        ("broken_functions:gives_three", "<integer a, integer b>", "2 values"),
        ("broken_functions:takes_nothing", "integer", "TypeError"),
    ],
)
def test_a_foreign_function_that_breaks_its_word(
    shop: Database, target: str, result: str, message: str, call: str
) -> None:
    script = declared(target, result).replace("«", "") + "\n" + call.format(n=5)
    check(shop, script, ForeignFault, "foreign", message, "")


@pytest.mark.parametrize("call", ["«broken(5);", "«select broken(5);"])
def test_a_foreign_function_without_python(shop: Database, call: str) -> None:
    script = f"create function broken(integer n) -> integer as foreign;\n{call}"
    check(shop, script, ForeignFault, "foreign", "broken(integer)", "db.foreign")


def test_a_foreign_function_that_fails_undoes_what_went_before_it(shop: Database) -> None:
    def fails(n: int) -> int:
        raise ValueError("no")

    shop.foreign("fails", fails)
    check(
        shop,
        "«for each item i do set quantity(i) = fails(quantity(i));",
        ForeignFault,
        "foreign",
        "fails",
        "",
    )
    check(
        shop,
        "«begin delete :toy; fails(5); end;",
        ForeignFault,
        "foreign",
        "ValueError: no",
        "Python",
    )


def test_the_python_error_is_the_cause(shop: Database) -> None:
    def fails(n: int) -> int:
        raise LookupError("here")

    shop.foreign("fails", fails)
    for text in ("fails(5);", "select fails(5);"):
        with pytest.raises(ForeignFault) as caught:
            shop.amosql(text)
        assert isinstance(caught.value.__cause__, LookupError)


# --- what is too much for one statement ----------------------------------------------------

MANY = ", ".join(f"item i{n}" for n in range(70))
JOINED = " and ".join(f"quantity(i{n}) <= quantity(x)" for n in range(70))
TOO_MUCH = {
    "columns": (f"«select {', '.join(['1'] * 3000)};", "2000 columns"),
    "results": (f"«create function f() -> <{', '.join(['integer'] * 3000)}>;", "2000 columns"),
    "calls": (f"«select {', '.join(['quantity(:toy)'] * 300)};", "more than 64 functions"),
    "joins": (f"«select 1 for each item x, {MANY} where {JOINED};", "more than 64 functions"),
    "or": (
        f"«select i for each item i where {' or '.join(f'quantity(i) = {n}' for n in range(600))};",
        "500 alternatives",
    ),
    "and of or": (
        f"select i for each item i where «{' and '.join(['(weight(i) = 1 or i = :toy)'] * 40)};",
        "10000 alternatives",
    ),
    "plus": (f"select «1{' + 1' * 5000};", "more than 900 parts are joined by `+`"),
    "and": (
        f"select i for each item i where «{' and '.join(['weight(i) = 1'] * 5000)};",
        "more than 900 parts are joined by `and`",
    ),
    "in a rule": (
        f"create rule r(item x) as when for each {MANY} where {JOINED} do print(x);"
        "activate r(:toy); «commit;",
        "in the condition of rule r: this joins more than 64 functions",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_too_large_for_the_engine_says_so(shop: Database, name: str) -> None:
    script, words = TOO_MUCH[name]
    error = fail(shop, script)
    assert isinstance(error, SafetyFault)
    assert error.code == "too-complex"
    assert words in error.message
    assert "engine" not in error.message


def test_a_function_that_is_too_large_says_so_to_python(shop: Database) -> None:
    shop.amosql(f"create function f(item x) -> integer as select 1 for each {MANY} where {JOINED};")
    f = shop.function("f")
    for use in (lambda: f[shop.variables["toy"]], lambda: list(f.items())):
        with pytest.raises(SafetyFault, match="more than 64 functions") as caught:
            use()
        assert caught.value.code == "too-complex"


def test_what_refers_to_one_table_too_often_says_so(shop: Database) -> None:
    below = "extent item"
    for name in ("once", "twice", "thrice"):
        choices = " UNION ALL ".join([f'SELECT c0 FROM "{below}"'] * 41)
        shop.internals.connection.run(f"CREATE TEMP VIEW {name} AS {choices}")
        below = name
    with pytest.raises(SafetyFault, match="one function or type too many times") as caught:
        shop.internals.connection.rows("SELECT c0 FROM thrice")
    assert caught.value.code == "too-complex"


CHAINS = {
    "+": (f"select quantity(:toy){' + 1' * 300};", [(305,)]),
    "||": (f"""select length(name(:toy){' || "abc"' * 300});""", [(903,)]),
    "or": (
        f"select quantity(i) for each item i where "
        f"{' or '.join(f'quantity(i) = {n}' for n in range(5, 305))};",
        [(5,), (50,)],
    ),
    "and": (
        f"select quantity(i) for each item i where "
        f"{' and '.join(f'quantity(i) != {n}' for n in range(6, 306))};",
        [(0,), (5,)],
    ),
    "not or": (
        f"select quantity(i) for each item i where some(quantity(i)) and "
        f"not ({' or '.join(f'quantity(i) = {n}' for n in range(6, 306))});",
        [(0,), (5,)],
    ),
    "or as a value": (
        f"select {' or '.join(f'quantity(:toy) = {n}' for n in range(300))};",
        [(True,)],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_hundreds_of_operators_works(shop: Database, name: str) -> None:
    text, rows = CHAINS[name]
    assert sorted(shop.amosql(text).rows) == rows


# --- what a person reads -------------------------------------------------------------------


def test_a_report_shows_the_place_and_the_way_out(shop: Database) -> None:
    text = "set quantity(:toy) = 1;\n\tselect quantty(:toy);\n"
    with pytest.raises(HarkenError) as caught:
        shop.run_program("amosql", text, print, source="shop.amosql")
    assert caught.value.report().split("\n") == [
        "shop.amosql:2:9: [unknown-function] there is no function quantty",
        "  \tselect quantty(:toy);",
        "  \t       ^^^^^^^^^^^^^",
        "hint: did you mean quantity?",
    ]
    assert str(caught.value) == "there is no function quantty"


@pytest.mark.parametrize("before", [0, 20, 5000])
@pytest.mark.parametrize("after", [0, 20, 5000])
def test_a_report_shows_only_a_part_of_a_long_line(shop: Database, before: int, after: int) -> None:
    text = f"set :a = '{'x' * before}'; quantty(:toy); set :b = '{'x' * after}';"
    with pytest.raises(HarkenError) as caught:
        shop.amosql("1;\n" + text)
    headline, excerpt, marks, hint = caught.value.report().split("\n")
    assert headline.startswith(f"2:{text.index('quantty') + 1}: ")
    assert len(excerpt) <= 2 + errors.WIDEST
    assert excerpt[marks.index("^") : marks.rindex("^") + 1] == "quantty(:toy)"
    assert excerpt.startswith("  …") == (before > errors.LEAD)
    assert excerpt.endswith("…") == (after > errors.WIDEST)
    assert hint == "hint: did you mean quantity?"


def test_a_report_marks_no_more_than_it_shows(shop: Database) -> None:
    with pytest.raises(HarkenError) as caught:
        shop.amosql(f'set quantity(:toy) = "{"x" * 5000}";')
    _, excerpt, marks, _ = caught.value.report().split("\n")
    assert len(marks) == len(excerpt) == 2 + errors.WIDEST
    assert excerpt.endswith("x…")


def test_statements_of_one_shape_report_their_own_places(shop: Database) -> None:
    """The second is not parsed again, but its error is where it stands."""
    script = "set quantity(:toy) = 5;\n\n   set quantity(:book) = 6; set quantity(:acme) = 7;"
    for _ in range(2):
        error = fail(shop, script.replace("quantity(:acme)", "«quantity(:acme)"))
        assert error.code == "type-mismatch"
    error = fail(shop, "select 5 / 1;\nselect 5 / 2;\n  «select 5 / 0;")
    assert error.code == "division-by-zero"


def test_a_target_chosen_at_run_time_reports_the_place_of_this_text(shop: Database) -> None:
    shop.amosql("create function rank(item) -> integer;")
    shop.amosql("create function rank(ball b) -> integer as select quantity(b) + 1; commit;")
    text = "for each item i where quantity(i) < {} do set rank(i) = 1;"
    shop.amosql(text.format(100))
    shop.amosql("set quantity(:ball) = 7; commit;")
    error = fail(shop, "\n1; 2; 3;\n  " + text.format(100).replace("rank", "«rank"))
    assert error.code == "not-updatable"


def test_an_error_inside_a_procedure_points_to_the_call(shop: Database) -> None:
    shop.amosql(
        "create function bad(item i) -> boolean as begin set quantity(i) = div(1, 0); end; commit;"
    )
    error = fail(shop, "set quantity(:toy) = 1;\n  «bad(:toy);")
    assert error.code == "division-by-zero"


# --- what Python code may give -------------------------------------------------------------

CALLS: dict[str, tuple[Any, str, str]] = {
    "connect": (
        lambda db: harken.connect(5),
        "type-mismatch",
        "the path of a database must be a path",
    ),
    "bytes": (lambda db: harken.connect(b"x"), "type-mismatch", "b'x'"),
    "amosql": (
        lambda db: db.amosql(None),
        "type-mismatch",
        "a program must be a text, not None",
    ),
    "function": (
        lambda db: db.function(5),
        "type-mismatch",
        "the name of a function must be a text",
    ),
    "explain": (lambda db: db.explain(5, verbose=True), "type-mismatch", "must be a text"),
    "load": (
        lambda db: db.load(["item"], []),
        "type-mismatch",
        "the name of a type or table must be a text",
    ),
    "foreign": (lambda db: db.foreign(None, print), "type-mismatch", "must be a text"),
    "assign": (
        lambda db: db.assign(5, 5),
        "type-mismatch",
        "the name of a variable must be a text",
    ),
    "blank": (lambda db: db.assign("a b", 5), "bad-name", "cannot be 'a b'"),
    "nothing": (lambda db: db.assign(":", 5), "bad-name", "cannot be ''"),
    "digit": (lambda db: db.assign("1st", 5), "bad-name", "cannot be '1st'"),
    "built in": (lambda db: db.function("count"), "unknown-function", "built into the language"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_in_our_words(shop: Database, name: str) -> None:
    call, code, words = CALLS[name]
    before = state(shop)
    with pytest.raises(LanguageError, match=re.escape(words)) as caught:
        call(shop)
    assert caught.value.code == code
    assert caught.value.hint is not None
    assert state(shop) == before


def test_a_database_is_opened_by_a_path_object(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "shop.db") as db:
        db.amosql("create type item;")
    assert (tmp_path / "shop.db").exists()


def test_the_tree_of_errors_lists_every_code() -> None:
    """Codes are part of the contract, so the list at the top of errors.py is complete."""
    source = Path(errors.__file__).parent
    used = {
        code
        for file in source.rglob("*.py")
        for code in re.findall(r'code="([a-z-]+)"', file.read_text(encoding="utf-8"))
    }
    assert errors.__doc__ is not None
    listed = set(re.findall(r"[a-z]+(?:-[a-z]+)*", errors.__doc__))
    assert used - listed == set()


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (LanguageError, HarkenError),
        (SyntaxFault, LanguageError),
        (NameFault, LanguageError),
        (TypeFault, LanguageError),
        (SafetyFault, LanguageError),
        (EvaluationError, HarkenError),
        (ArithmeticFault, EvaluationError),
        (ValueFault, EvaluationError),
        (ForeignFault, EvaluationError),
        (IntegrityError, HarkenError),
        (StorageError, HarkenError),
    ],
)
def test_the_tree_of_errors(kind: type[HarkenError], parent: type[HarkenError]) -> None:
    assert issubclass(kind, parent)
    assert getattr(harken, kind.__name__) is kind
