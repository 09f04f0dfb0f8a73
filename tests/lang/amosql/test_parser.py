"""AMOSQL becomes the tree that a reader of the papers expects, or a fault they can act on."""

import datetime
from dataclasses import replace

import pytest

from harken.errors import Span, SyntaxFault
from harken.lang.amosql.builder import DEEPEST
from harken.lang.amosql.parser import parse, parse_statement
from harken.lang.amosql.statement_shapes import filled, statements
from harken.lang.amosql.syntax import (
    Activate,
    AddType,
    Assign,
    Binary,
    Block,
    Call,
    Commit,
    CreateFunction,
    CreateInstances,
    CreateRule,
    CreateType,
    Deactivate,
    Declaration,
    DeclareLocals,
    DeleteFunction,
    DeleteObjects,
    DeleteRule,
    DeleteType,
    Event,
    Expression,
    ExpressionStatement,
    ForEach,
    ForeignBody,
    FunctionReference,
    If,
    Instance,
    InterfaceVariable,
    Literal,
    Name,
    Print,
    Query,
    RemoveType,
    Return,
    Rollback,
    Statement,
    StoredBody,
    Tuple,
    Unary,
    Update,
)
from harken.lang.amosql.tree_walk import descendants

i, s, x = Name("i"), Name("s"), InterfaceVariable("x")
ITEM_I = Declaration("item", "i")
THREE = Binary("+", Literal(1), Literal(2))


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


def statement(text: str) -> Statement:
    (parsed,) = parse(text)
    return parsed


def expression(text: str) -> Expression:
    parsed = statement(text)
    assert isinstance(parsed, ExpressionStatement)
    return parsed.expression


def fault(text: str) -> SyntaxFault:
    with pytest.raises(SyntaxFault) as caught:
        parse(text)
    assert caught.value.span is not None
    return caught.value


def marked(text: str) -> str:
    """The part of the text that its fault points at."""
    span = fault(text).span
    assert span is not None
    return text[span.start : span.end]


# --- statements ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("create type person", CreateType("person")),
        ("CREATE TYPE student SubType Of person, x", CreateType("student", ("person", "x"))),
        (
            "create type employee subtype of person properties (name charstring, dept department)",
            CreateType(
                "employee",
                ("person",),
                (Declaration("charstring", "name"), Declaration("department", "dept")),
            ),
        ),
        ("delete type person", DeleteType("person")),
        ("delete function name", DeleteFunction("name")),
        ("delete function person.name", DeleteFunction("name", "person")),
        ("delete :x, i", DeleteObjects((x, i))),
        (
            "create student instances :iris, :amos",
            CreateInstances("student", (), (Instance("iris"), Instance("amos"))),
        ),
        (
            'create item(name, price) instances :x("lace", -1), ("sock", 2)',
            CreateInstances(
                "item",
                ("name", "price"),
                (
                    Instance("x", (Literal("lace"), Literal(-1))),
                    Instance(None, (Literal("sock"), Literal(2))),
                ),
            ),
        ),
        ("add teacher to :x, i", AddType("teacher", (x, i))),
        ("remove teacher from :x", RemoveType("teacher", (x,))),
        ("set quantity(:x) = 5", Update("set", call("quantity", x), Literal(5))),
        ("ADD supplies(s) = i", Update("add", call("supplies", s), i)),
        ("remove supplies(s) = i", Update("remove", call("supplies", s), i)),
        ("set employee.pay(i) = 1", Update("set", Call("pay", (i,), "employee"), Literal(1))),
        ("set :x = i", Assign(x, i)),
        ("set i = :x", Assign(i, x)),
        ("set :x = select i", Assign(x, Query((i,)))),
        ("call order(i, 5)", ExpressionStatement(call("order", i, Literal(5)), called=True)),
        ("order(i, 5)", ExpressionStatement(call("order", i, Literal(5)))),
        ("print(i, :x)", Print((i, x))),
        (
            "declare integer n, item i",
            DeclareLocals((Declaration("integer", "n"), ITEM_I)),
        ),
        ("delete rule r", DeleteRule("r")),
        ("delete rule", DeleteObjects((Name("rule"),))),
        ("activate r", Activate(Name("r"), ())),
        ("Activate r()", Activate(Name("r"), ())),
        ("activate r(:x, 1 + 2) priority 5", Activate(Name("r"), (x, THREE), 5)),
        ("activate r PRIORITY 0", Activate(Name("r"), ())),
        ("activate :x(1 + 2) priority 5", Activate(x, (THREE,), 5)),
        ("Deactivate :x", Deactivate(x, ())),
        ("deactivate r", Deactivate(Name("r"), ())),
        ("deactivate r(:x, 1 + 2)", Deactivate(Name("r"), (x, THREE))),
        ("return i", Return(i)),
        ("commit", Commit()),
        ("Commit Work", Commit()),
        ("rollback work", Rollback()),
    ],
)
def test_statements(text: str, tree: Statement) -> None:
    assert parse(text) == (tree,)
    assert parse(f" ;; {text} ; /* done */") == (tree,)


@pytest.mark.parametrize(
    ("signature", "parameters", "results", "bag"),
    [
        ("f() -> integer", (), (Declaration("integer"),), False),
        ("f(item) -> integer n", (Declaration("item"),), (Declaration("integer", "n"),), False),
        ("f(item i, T) -> bag of T", (ITEM_I, Declaration("T")), (Declaration("T"),), True),
        ("f(T) -> <T a, U>", (Declaration("T"),), (Declaration("T", "a"), Declaration("U")), False),
        ("f(T)->bag of<T>", (Declaration("T"),), (Declaration("T"),), True),
    ],
)
def test_signatures(
    signature: str,
    parameters: tuple[Declaration, ...],
    results: tuple[Declaration, ...],
    bag: bool,
) -> None:
    created = CreateFunction("f", parameters, results, bag, StoredBody())
    assert statement(f"create function {signature}") == created
    assert statement(f"create function {signature} as stored") == created


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        ('foreign "module:f"', ForeignBody("module:f")),
        ("foreign", ForeignBody(None)),
        ("select g(i)", Query((call("g", i),))),
        ("g(i)", ExpressionStatement(call("g", i))),
        ("call g(i)", ExpressionStatement(call("g", i), called=True)),
        ("set g(i) = 1", Update("set", call("g", i), Literal(1))),
        ("begin g(i); end", Block((ExpressionStatement(call("g", i)),))),
        ("for each item j do print(i)", ForEach((Declaration("item", "j"),), None, Print((i,)))),
    ],
)
def test_bodies(body: str, tree: Statement) -> None:
    created = statement(f"create function f(item i) -> boolean as {body}")
    assert isinstance(created, CreateFunction)
    assert created.body == tree


def test_derived_function_of_the_thesis() -> None:
    created = statement("""
        create function threshold(item i) -> integer as
            select consume_frequency(i) * delivery_time(i, s) + min_stock(i)
            for each supplier s where supplies(s) = i;""")
    product = Binary("*", call("consume_frequency", i), call("delivery_time", i, s))
    query = Query(
        (Binary("+", product, call("min_stock", i)),),
        (Declaration("supplier", "s"),),
        Binary("=", call("supplies", s), i),
    )
    integer = Declaration("integer")
    assert created == CreateFunction("threshold", (ITEM_I,), (integer,), False, query)


@pytest.mark.parametrize(
    "text",
    [
        "for each item i where p(i) do print(i)",
        "for each item i where p(i) print(i)",
        "for each item i where (p(i)) print(i)",
    ],
)
def test_for_each_with_a_condition(text: str) -> None:
    assert statement(text) == ForEach((ITEM_I,), call("p", i), Print((i,)))


def test_for_each_without_a_condition() -> None:
    loop = ForEach((ITEM_I, Declaration("item", "j")), None, Print((i,)))
    assert statement("for each item i, item j do print(i)") == loop
    assert statement("for each item i, item j print(i)") == loop


def test_a_call_may_follow_a_condition_without_do() -> None:
    loop = statement("for each item i where quantity(i) < 5 order(i)")
    assert isinstance(loop, ForEach)
    assert loop.body == ExpressionStatement(call("order", i))


a, b, c = (ExpressionStatement(Name(name)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("if i then a", If(i, a)),
        ("if i then a else b", If(i, a, b)),
        ("if i then a; else b", If(i, a, b)),
        ("if i then a; /* or */ else b", If(i, a, b)),
        ("if i then a end if", If(i, a)),
        ("if i then a; else b; end if", If(i, a, b)),
        ("if i then if s then a else b", If(i, If(s, a, b))),
        ("if i then if s then a end if else b", If(i, If(s, a), b)),
        ("if i then begin a; end end if", If(i, Block((a,)))),
        ("begin if i then a end", Block((If(i, a),))),
        ("begin if i then a; b; end", Block((If(i, a), b))),
        ("begin end", Block(())),
        ("begin; a;; b end", Block((a, b))),
        ("begin begin a end; b end", Block((Block((a,)), b))),
    ],
)
def test_blocks_and_branches(text: str, tree: Statement) -> None:
    assert parse(f"{text}; c") == (tree, c)


# --- rules ---------------------------------------------------------------------------------

p_of_i, act = call("p", i), ExpressionStatement(call("act", i))


@pytest.mark.parametrize(
    ("body", "variables", "condition"),
    [
        ("when p(i) do act(i)", (), p_of_i),
        ("when for each item i where p(i) do act(i)", (ITEM_I,), p_of_i),
        ("when for each item i, T t do act(i)", (ITEM_I, Declaration("T", "t")), None),
        ("for each item i when p(i) do act(i)", (ITEM_I,), p_of_i),
        ("FOR EACH item i, T t WHEN p(i) DO act(i)", (ITEM_I, Declaration("T", "t")), p_of_i),
    ],
)
def test_conditions_of_rules(
    body: str, variables: tuple[Declaration, ...], condition: Expression | None
) -> None:
    assert statement(f"create rule r() as {body}") == CreateRule("r", (), variables, condition, act)
    updated = (Event("updated", "f"),)
    created = CreateRule("r", (), variables, condition, act, updated)
    assert statement(f"create rule r() as on updated(f) {body}") == created


@pytest.mark.parametrize(
    ("parameters", "declared"),
    [
        ("", ()),
        ("item i", (ITEM_I,)),
        ("item, item i", (Declaration("item"), ITEM_I)),
    ],
)
def test_parameters_of_rules(parameters: str, declared: tuple[Declaration, ...]) -> None:
    created = CreateRule("r", declared, (), p_of_i, act)
    assert statement(f"create rule r({parameters}) as when p(i) do act(i)") == created


ADDED = Event("added", "f")
PAY = Event("removed", "pay", "employee")


@pytest.mark.parametrize(
    ("text", "events", "sensitivity", "coupling"),
    [
        ("create strict rule r() as", (), "strict", "deferred"),
        ("create Nervous Immediate rule r() as", (), "nervous", "immediate"),
        ("create detached rule r() nervous as", (), "nervous", "detached"),
        ("create rule r() deferred as nervous", (), "nervous", "deferred"),
        ("create rule r() as immediate strict", (), "strict", "immediate"),
        ("create rule r() on added(f) as", (ADDED,), None, "deferred"),
        (
            "create rule r() on added(f) or removed(employee.pay) as",
            (ADDED, PAY),
            None,
            "deferred",
        ),
        ("create rule r() nervous ON Added(f), added(f) as", (ADDED, ADDED), "nervous", "deferred"),
        ("create immediate rule r() as on added(f) nervous", (ADDED,), "nervous", "immediate"),
    ],
)
def test_options_of_rules(
    text: str, events: tuple[Event, ...], sensitivity: str | None, coupling: str
) -> None:
    created = CreateRule("r", (), (), p_of_i, act, events, None, sensitivity, coupling)
    assert statement(f"{text} when p(i) do act(i)") == created


def test_a_rule_with_events_needs_no_condition() -> None:
    created = CreateRule("r", (), (), None, Rollback(), (ADDED,))
    assert statement("create rule r() on added(f) as do rollback") == created
    assert statement("create rule r() as on added(f) do rollback") == created


@pytest.mark.parametrize(
    ("action", "tree"),
    [
        ("begin act(i); end", Block((act,))),
        ("set p(i) = 1", Update("set", p_of_i, Literal(1))),
        ("call act(i)", ExpressionStatement(call("act", i), called=True)),
        ("if i then act(i); else rollback; end if", If(i, act, Rollback())),
        ("for each item i do act(i)", ForEach((ITEM_I,), None, act)),
        ("deactivate r(i)", Deactivate(Name("r"), (i,))),
    ],
)
def test_actions_of_rules(action: str, tree: Statement) -> None:
    created = CreateRule("r", (), (), p_of_i, tree)
    assert parse(f"create rule r() as when p(i) do {action}; commit") == (created, Commit())


# --- expressions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a or b and c", "a or (b and c)"),
        ("not a = b and c", "(not (a = b)) and c"),
        ("not not a", "not (not a)"),
        ("a + b < c - d", "(a + b) < (c - d)"),
        ("a - b - c", "(a - b) - c"),
        ("a + b * c || d", "(a + (b * c)) || d"),
        ("a / b / c", "(a / b) / c"),
        ("-a * b", "(-a) * b"),
        ("a * - b", "a * (-b)"),
        ("a == b", "a = b"),
        ("a <> b", "a != b"),
        ("a IN f(b) OR true", "(a in f(b)) or True"),
        ("<a, b + 1> = f(c)", "(<a, (b + 1)>) = f(c)"),
        ("a < <b, c>", "a < (<b, c>)"),
        ("a -5", "a - (5)"),
        ("a - -5", "a - (-5)"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert expression(text) == expression(same)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-5", -5),
        ("- 5", -5),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("True", True),
        ("false", False),
        ("\"a 'b'\"", "a 'b'"),
        ("'a \"b\"'", 'a "b"'),
        (r'"\" \' \\ \n \t \u00e5"', "\" ' \\ \n \t å"),
        (r'"\ud83d\ude00"', "😀"),
        ('"two\nlines; /* no comment */"', "two\nlines; /* no comment */"),
        ("|2026-11-15|", datetime.date(2026, 11, 15)),
        ("|2026-11-15/08:30:00|", datetime.datetime(2026, 11, 15, 8, 30, tzinfo=datetime.UTC)),
        ("|2026-11-15T08:30:00Z|", datetime.datetime(2026, 11, 15, 8, 30, tzinfo=datetime.UTC)),
        (
            "|2026-11-15 08:30:00.25|",
            datetime.datetime(2026, 11, 15, 8, 30, 0, 250_000, tzinfo=datetime.UTC),
        ),
    ],
)
def test_literals(text: str, value: object) -> None:
    found = expression(text)
    assert isinstance(found, Literal)
    assert found.value == value
    assert type(found.value) is type(value)


def test_a_minus_is_a_sign_only_directly_before_a_number() -> None:
    assert expression("-(5)") == Unary("-", Literal(5))
    assert expression("--5") == Unary("-", Literal(-5))
    assert expression("-i") == Unary("-", i)


def test_other_values() -> None:
    assert expression("employee.pay(:x)") == Call("pay", (x,), "employee")
    assert expression("#'pay'") == FunctionReference("pay")
    assert expression("#'employee.pay'") == FunctionReference("employee.pay")
    assert expression("<1, <i, s>>") == Tuple((Literal(1), Tuple((i, s))))
    assert expression("((i))") == i


def test_queries_inside_expressions() -> None:
    query = Query((i,), (ITEM_I,), call("p", i))
    text = "select i for each item i where p(i)"
    assert expression(text) == query
    assert expression(f"count({text})") == call("count", query)
    assert expression(f"({text})") == query
    assert expression(f"1 + ({text})") == Binary("+", Literal(1), query)
    assert expression("select distinct i, s") == Query((i, s), distinct=True)
    assert expression("f(1, select i, s)") == call("f", Literal(1), Query((i, s)))


@pytest.mark.parametrize(
    "text",
    [
        "create type type",
        "create function where(function function, type of) -> bag of type priority",
        "create item(name, order, instances) instances :select(1, 2, 3)",
        "set count(:end) = order(print, where)",
        "add type to :to",
        "select type(function), each for each type function, function each where type(each) = of",
        "for each function rule do priority(rule)",
        "for each item when where on(when) priority(when)",
        "for each item on when(on)",
        "create rule instances :rule",
        "create rule(name, nervous) instances :rule(1, 2)",
        "create strict /* or so */ (name) instances :strict(1)",
        "create rule rule(rule rule) on added(on) as when when(on) do priority(rule)",
        "create rule on() as for each when when, item on when strict(when) do nervous(on)",
        "set priority(:when) = on(added, removed, updated, strict, immediate)",
        "delete rule(:x)",
        "begin delete rule end",
        "activate(:x)",
        "activate + 1",
        "create function activate(integer activate) -> integer as activate and activate",
        "activate activate priority 1",
        "activate priority priority 1",
        "årsinkomst(:löneläge)",
    ],
)
def test_keywords_are_names_where_they_cannot_be_keywords(text: str) -> None:
    assert len(parse(text)) == 1


# --- spans ---------------------------------------------------------------------------------


def test_spans_cover_exactly_what_they_were_read_from() -> None:
    text = "commit; set f((a + -1) * :x) = (b) ;"
    update = parse(text)[1]
    covered = [text[n.span.start : n.span.end] for n, _ in descendants(update)]
    assert sorted(covered) == sorted(
        [
            "set f((a + -1) * :x) = (b)",
            "f((a + -1) * :x)",
            "(a + -1) * :x",
            "a + -1",
            "a",
            "-1",
            ":x",
            "b",
        ]
    )


def test_spans_of_rules() -> None:
    text = (
        "; create rule r(T t) on added(T.f) as for each U u when (p) do activate s(t) priority 3;"
    )
    (rule,) = parse(text)
    covered = [text[n.span.start : n.span.end] for n, _ in descendants(rule)]
    activate = "activate s(t) priority 3"
    assert sorted(covered) == sorted(
        [text[2:-1], "T t", "U u", "p", activate, "s", "t", "added(T.f)"]
    )


def test_one_statement_of_a_longer_text() -> None:
    assert parse_statement("commit", 100).span == Span(100, 106)
    moved = parse_statement("print(:x)", 10)
    assert [node.span for node, _ in descendants(moved)] == [Span(10, 19), Span(16, 18)]
    with pytest.raises(SyntaxFault) as caught:
        parse_statement("set f(x) 5", 100)
    assert caught.value.span == Span(109, 110)
    for wrong in ("", "commit; commit"):
        with pytest.raises(SyntaxFault, match="statement"):
            parse_statement(wrong)


# --- faults --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("set quantity(:x) = 5", "set quantity(:y) = 6"),
        ("create type item", "create type supplier"),
        ("create function f(item) -> integer", "commit"),
        ("create function f(item) -> integer", "create type x"),
        ("select i for each item i where p(i)", "select 1"),
        ("begin a", "b end"),
        ("create item instances :x", ":x"),
        ("activate r(:x) priority 3", "activate s"),
        ("set f(:x) = 5", "on (:x)"),
        ("deactivate r()", "rule (:x)"),
        ("create function f(item) -> integer", "deactivate r"),
        ("create rule r() as when p do q()", "create rule s() as when p do q()"),
    ],
)
def test_missing_semicolon(first: str, second: str) -> None:
    found = fault(f"{first}\n  {second};")
    assert found.code == "missing-semicolon"
    assert found.span == Span(len(first), len(first))
    assert f"`{second.split()[0]}`" in found.message
    assert "`;`" in found.message


INSIDE = "types, functions and rules cannot be created or deleted inside another statement"
CREATED = "`function`, `rule`, `type`, a name or a rule's option"
REACTION = "`do`, `for each`, `on`, `when` or a rule's option"
TWICE = "`{}` stands here twice"


@pytest.mark.parametrize(
    ("text", "mark", "message"),
    [
        ("set f(x) 5", "5", "found `5` where `=` was expected"),
        ("set f(x) = ;", ";", "found `;` where a value was expected"),
        ("set f(x = 5;", ";", "found `;` where `)`, `,` or an operator was expected"),
        ("create function f(a) integer", "integer", "found `integer` where `->` was expected"),
        ("select for each item i", "for", "found `for` where a value or `distinct` was expected"),
        ("for each item do f(i)", "do", "found `do` where a name was expected"),
        ("if a b", "b", "found `b` where `then` or an operator was expected"),
        ("a; else b", "else", "found `else` where `;` or an operator was expected"),
        ("a = b = c", "=", "found `=` where `;` or an operator was expected"),
        ("create", "", f"the text ends where {CREATED} was expected"),
        ("create rule r as", "as", "found `as` where `(` was expected"),
        ("create rule r() as p", "p", f"found `p` where {REACTION} was expected"),
        (
            "create rule r() on f",
            "f",
            "found `f` where an event such as `added`, `removed` or `updated` was expected",
        ),
        ("create rule r() as do a", "do", "this rule has neither a condition nor an event"),
        ("create rule r() as when p", "", "the text ends where `do` or an operator was expected"),
        (
            "create strict rule r() nervous as when p do a",
            "nervous",
            "`strict` and `nervous` contradict each other",
        ),
        ("create rule r() detached detached as when p do a", "detached", TWICE.format("detached")),
        ("create rule r() on added(f) as on added(g) do a", "on", TWICE.format("on")),
        ("begin delete rule r end", "delete rule r", INSIDE),
        (
            "create rule r() as when p do create rule s() as when p do a",
            "create rule s() as when p do a",
            INSIDE,
        ),
        ("begin commit;", "", "the text ends where a statement, `;` or `end` was expected"),
        ("selct f(x)", "selct", "no statement begins with `selct`"),
        ("a $ b", "$", "the character `$` cannot stand here"),
        ("f(\0)", "\0", "the character `\\x00` cannot stand here"),
        ("12abc", "12abc", "`12abc` is neither a number nor a name"),
        ('f(x) "abc', '"', "this string is never closed"),
        ("commit 'abc", "'", "this string is never closed"),
        ("1 /* 2", "/*", "this comment is never closed"),
        ("#'a b'", "#'a b'", "`#'a b'` does not name a function"),
        ("begin create type x; end", "create type x", INSIDE),
    ],
)
def test_faults_say_what_was_found_and_expected(text: str, mark: str, message: str) -> None:
    found = fault(text)
    assert (found.code, found.message, marked(text)) == ("syntax", message, mark)
    assert found.hint


@pytest.mark.parametrize(
    ("text", "code", "mark"),
    [
        ("f(9223372036854775808)", "overflow", "9223372036854775808"),
        ("f(-9223372036854775809)", "overflow", "9223372036854775809"),
        ("f(" + "9" * 5000 + ")", "overflow", "9" * 5000),
        ("f(1e999)", "overflow", "1e999"),
        ("f(|2026-02-30|)", "bad-value", "|2026-02-30|"),
        ("f(|tomorrow|)", "bad-value", "|tomorrow|"),
        (r'f("ab\qc")', "bad-value", r"\q"),
        (r'f("\ud800")', "bad-value", r'"\ud800"'),
        ('f("\ud800")', "bad-value", '"\ud800"'),
        ("activate r() priority 6", "bad-value", "6"),
        ("activate r() priority -1", "bad-value", "-1"),
        ("activate r() priority 1.0", "bad-value", "1.0"),
        ("begin activate r priority p(:x) end", "bad-value", "p(:x)"),
        ("activate r priority true", "bad-value", "true"),
    ],
)
def test_faults_with_codes_of_their_own(text: str, code: str, mark: str) -> None:
    assert (fault(text).code, marked(text)) == (code, mark)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("select name(i) forr each item i", "did you mean `for`?"),
        ("creat type x", "did you mean `create`?"),
        ("print(f(1)", "a `(` is still open"),
        ("a < b < c", "comparisons do not chain"),
        ("set quantity :x = 5", "set quantity(:shoelaces) = 100"),
        ("create nervous rule r() as whn p do a", "create rule low(item i) as when"),
        ("create rule r() on added(f) as on added(g) do a", "join all events by `or`"),
        ("activate r priority 9", "a whole number from 0 to 5"),
        ("activte r()", "did you mean `activate`?"),
        ("print(“x”)", "straight quotes"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert hint in (fault(text).hint or "")


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "||", "and", "or"])
def test_a_chain_is_not_nested(operator: str) -> None:
    """Not by the parser, nor by what is done to a tree afterwards."""
    text = f" {operator} ".join(f"a({n})" for n in range(2_000))
    first, links = first_and_links(expression(text))
    assert first == call("a", Literal(0))
    assert [link.right for link in links] == [call("a", Literal(n)) for n in range(1, 2_000)]
    assert {link.operator for link in links} == {operator}
    again = filled(statements("commit; " + text)[1])
    assert isinstance(again, ExpressionStatement)
    assert first_and_links(again.expression) == (first, links)


def first_and_links(left: Expression) -> tuple[Expression, list[Binary]]:
    """A chain taken apart, so that comparing it does not recurse."""
    links: list[Binary] = []
    while isinstance(left, Binary):
        links.append(replace(left, left=Literal(0)))
        left = left.left
    return left, links[::-1]


def test_nesting_is_limited_whatever_the_stack() -> None:
    assert len(parse("f(" * (DEEPEST - 10) + ")" * (DEEPEST - 10))) == 1
    assert len(parse("(" * 10_000 + "1" + ")" * 10_000)) == 1
    for deep in ("1+(" * 10_000 + "1" + ")" * 10_000, "not " * 10_000 + "a", "f(" * 10_000):
        deep += ")" * deep.count("f(")
        assert "nested too deeply" in fault(deep).message


def test_long_gaps_and_strings_are_no_trouble() -> None:
    gap = " " * 100_000 + "/* * / ** */" * 10_000
    long = r"\n" * 100_000
    assert parse(f'{gap}"{long}"{gap};{gap}') == (ExpressionStatement(Literal("\n" * 100_000)),)


def test_a_rule_with_variables_needs_no_condition() -> None:
    one, other = (
        parse_statement(f"create rule r() on updated(f) as {words} item i do p(i);")
        for words in ("for each", "when for each")
    )
    assert isinstance(one, CreateRule)
    assert isinstance(other, CreateRule)
    assert one.condition is other.condition is None
    assert [each.name for each in one.variables] == [each.name for each in other.variables] == ["i"]
