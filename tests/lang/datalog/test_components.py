"""Components: instances, parameters, inheritance, what overrides what, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harken
from harken.lang.datalog.components import expand
from harken.lang.datalog.parser import parse
from harken.lang.datalog.rule_text import write

GRAPH = """
.comp Graph<Node> {
    .decl edge(a: Node, b: Node)
    .decl reach(a: Node, b: Node) overridable
    reach(a, b) :- edge(a, b).
    reach(a, c) :- reach(a, b), edge(b, c).
}
"""

PROGRAMS: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    # what it shows: the program, a query, its rows
    "two instances are apart": (
        GRAPH
        + """
        .init road = Graph<symbol>   .init rail = Graph<symbol>
        road.edge("a", "b").  road.edge("b", "c").  rail.edge("c", "d").
        """,
        '?- road.reach("a", x); rail.reach("c", x).',
        [("b",), ("c",), ("d",)],
    ),
    "a parameter is a type": (
        GRAPH + ".init g = Graph<number>  g.edge(1, 2).  g.edge(2, 3).",
        "?- g.reach(1, x), y = x + 1.",
        [(2, 3), (3, 4)],
    ),
    "facts and rules inside": (
        ".comp C { .decl p(x: number) p(1). .decl q(x: number) q(x + 1) :- p(x). } .init c = C",
        "?- c.q(x).",
        [(2,)],
    ),
    "rules of an instance are added outside": (
        GRAPH + ".init g = Graph<number> g.edge(1, 2). g.edge(b, a) :- g.edge(a, b).",
        "?- g.reach(1, x).",
        [(1,), (2,)],
    ),
    "an heir has all of its base and adds to it": (
        GRAPH
        + """
        .comp Symmetric<N> : Graph<N> { edge(b, a) :- edge(a, b). }
        .init s = Symmetric<number>  s.edge(1, 2).
        """,
        "?- s.reach(2, x).",
        [(1,), (2,)],
    ),
    "a component inside sees the parameters around it": (
        """
        .comp Outer<K> {
            .comp Inner<V> { .decl r(k: K, v: V) }
            .init i = Inner<number>
        }
        .comp Heir<A, B> : Outer<B> { .init j = Inner<A> }
        .init o = Outer<symbol>  o.i.r("a", 1).
        .init h = Heir<symbol, number>  h.j.r(1, "b").  h.i.r(1, 2).
        """,
        "?- o.i.r(k, v), h.j.r(v, s), h.i.r(v, n).",
        [("a", 1, "b", 2)],
    ),
    "an heir of two": (
        """
        .comp A { .decl p(x: number) p(1). }
        .comp B { .decl q(x: number) q(2). }
        .comp C : A, B { .decl r(x: number) r(x) :- p(x); q(x). }
        .init c = C
        """,
        "?- c.r(x).",
        [(1,), (2,)],
    ),
    "what is overridden is not inherited": (
        GRAPH
        + """
        .comp Steps<N> : Graph<N> { .override reach  reach(a, b) :- edge(a, b), a != b. }
        .init s = Steps<number>  s.edge(1, 2).  s.edge(2, 3).  s.edge(3, 3).
        """,
        "?- s.reach(x, y).",
        [(1, 2), (2, 3)],
    ),
    "an heir of an heir overrides both": (
        """
        .comp A { .decl p(x: number) overridable  p(1). }
        .comp B : A { .override p  p(2). }
        .comp C : B { .override p  p(3). }
        .init c = C
        """,
        "?- c.p(x).",
        [(3,)],
    ),
    "the other heads of a rule are inherited": (
        """
        .comp A { .decl p(x: number) overridable .decl q(x: number) p(x), q(x) :- x = 1. }
        .comp B : A { .override p }
        .init b = B
        """,
        "?- b.q(x), !b.p(x).",
        [(1,)],
    ),
    "instances inside instances": (
        GRAPH
        + """
        .comp City { .init bus = Graph<symbol>  .init tram = Graph<symbol>
            .decl both(a: symbol, b: symbol)
            both(a, b) :- bus.reach(a, b), tram.reach(a, b). }
        .init oslo = City
        oslo.bus.edge("a", "b").  oslo.tram.edge("a", "b").  oslo.tram.edge("b", "c").
        """,
        "?- oslo.both(x, y).",
        [("a", "b")],
    ),
    "a name means the innermost thing": (
        """
        .decl p(x: number) p(1).    .decl q(x: number) q(10).
        .comp In { .decl r(x: number) r(x) :- p(x). r(x) :- q(x). }
        .comp Out { .decl p(x: number) p(2). .init i = In }
        .init o = Out
        """,
        "?- o.i.r(x).",
        [(2,), (10,)],
    ),
    "a rule inside about a relation outside": (
        '.decl log(s: symbol) .comp C { .decl p(x: number) log("c") :- p(_). p(1). } .init c = C',
        "?- log(x).",
        [("c",)],
    ),
    "a parameter is a component": (
        """
        .comp One { .decl p(x: number) p(1). }  .comp Two { .decl p(x: number) p(2). }
        .comp Holder<C> { .init c = C  .decl r(x: number) r(x) :- c.p(x). }
        .init one = Holder<One>  .init two = Holder<Two>
        """,
        "?- one.r(x), two.r(y).",
        [(1, 2)],
    ),
    "a parameter is a base": (
        """
        .comp One { .decl p(x: number) p(1). }
        .comp More<B> : B { p(x + 1) :- p(x), x < 3. }
        .init m = More<One>
        """,
        "?- m.p(x).",
        [(1,), (2,), (3,)],
    ),
    "a parameter that is a component inside": (
        """
        .comp X<C> { .comp One { p(1). } .comp Two { p(2). } .decl p(x: number) .init c = C }
        .init x = X<Two>
        """,
        "?- x.p(n).",
        [(2,)],
    ),
    "components inside components": (
        """
        .comp A { .comp B { .decl p(x: number) p(1). } .init b = B }
        .comp C : A { .init other = B  other.p(2). }
        .init c = C
        """,
        "?- c.b.p(x); c.other.p(x).",
        [(1,), (2,)],
    ),
    "types of an instance": (
        """
        .comp C<T> { .type Name <: T  .decl p(n: Name)  p("x"). .decl q(n: Name)
            q(as(cat(n, "y"), Name)) :- p(n). }
        .init c = C<symbol>
        .decl r(n: c.Name)  r(n) :- c.q(n).
        """,
        "?- r(n).",
        [("xy",)],
    ),
    "a type that is declared where the instance is": (
        ".type Id <: number .comp C<T> { .decl p(x: T) p(7). } .init c = C<Id>"
        " .decl r(x: Id) r(x) :- c.p(x).",
        "?- r(x).",
        [(7,)],
    ),
    "aggregates and negation inside": (
        """
        .comp Stock { .decl item(i: symbol, n: number)  .decl low(i: symbol)
            low(i) :- item(i, _), 5 > sum n : { item(i, n) }, !reserved(i).
            .decl reserved(i: symbol) }
        .init s = Stock
        s.item("pen", 2).  s.item("ink", 2).  s.item("ink", 4).  s.item("pad", 1).
        s.reserved("pad").
        """,
        "?- s.low(i).",
        [("pen",)],
    ),
    "an instance before its component": (
        ".init c = C  ?- c.p(x). .comp C { .decl p(x: number) p(1). }",
        "?- c.p(x).",
        [(1,)],
    ),
    "a relation called like a directive": (
        ".comp C { .decl input(x: number) input(1). } .init c = C",
        "?- c.input(x).",
        [(1,)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_components(name: str) -> None:
    program, query, expected = PROGRAMS[name]
    with harken.connect() as db:
        db.datalog(program)
        assert db.datalog(query).rows == expected


ERRORS: dict[str, tuple[str, str, str, str]] = {
    # what is wrong: the program, the code, the text that is marked, a part of the message
    "an unknown component": (".init g = Grap<number>", "unknown-component", "Grap<number>", "Grap"),
    "an unknown base": (".comp A : B {} .init a = A", "unknown-component", "B", "no component B"),
    "too few types": (GRAPH + ".init g = Graph", "arity", "Graph", "1 parameter, and 0 types"),
    "too many types": (
        GRAPH + ".init g = Graph<number, symbol>",
        "arity",
        "Graph<number, symbol>",
        "1 parameter, and 2 types",
    ),
    "an unknown type": (GRAPH + ".init g = Graph<numbr>", "unknown-type", "a: Node", "numbr"),
    "an instance that holds itself": (
        ".comp A { .init b = B } .comp B { .init a = A } .init x = A",
        "syntax",
        ".init a = A",
        "A → B → A",
    ),
    "instances without end": (
        ".comp A<T> { .type U <: T .init a = A<U> .init b = A<T> } .init x = A<number>",
        "syntax",
        ".init a = A<U>",
        "A → A",
    ),
    "more instances than anybody needs": (
        "".join(f".comp A{i} {{ .init x = A{i + 1} .init y = A{i + 1} }}" for i in range(30))
        + ".comp A30 {} .init a = A0",
        "too-complex",
        ".init y = A29",
        "more than 10000 instances",
    ),
    "an heir of itself": (
        ".comp A : B {} .comp B : A {} .init x = A",
        "syntax",
        ".comp A : B {}",
        "A inherits from itself: A → B → A",
    ),
    "two components of one name": (
        ".comp A {} .comp A { .decl p(x: number) }",
        "exists",
        ".comp A { .decl p(x: number) }",
        "already a component A",
    ),
    "two instances of one name": (
        ".comp A {} .init a = A .init a = A",
        "exists",
        ".init a = A",
        "already an instance a",
    ),
    "what is not inherited is not overridden": (
        ".comp A {} .comp B : A { .override p } .init b = B",
        "unknown-relation",
        ".override p",
        "B inherits no relation p",
    ),
    "what may not be overridden": (
        ".comp A { .decl p(x: number) } .comp B : A { .override p } .init b = B",
        "not-updatable",
        ".override p",
        "p is not overridable",
    ),
    "overriding outside": (".override p", "syntax", ".override p", "only a component overrides"),
    "a step inside": (".comp A { .decl p() +p(). }", "syntax", "+p().", "no steps"),
    "a component that is not closed": (".comp A { .decl p()", "syntax", "", "`}` is expected"),
    "an unknown relation of an instance": (
        GRAPH + ".init g = Graph<number>  ?- g.rech(1, x).",
        "unknown-relation",
        "g.rech(1, x)",
        "no relation g.rech",
    ),
    "an unknown relation in a component": (
        ".comp A { .decl p(x: number) p(x) :- q(x). } .init a = A",
        "unknown-relation",
        "q(x)",
        "no relation q",
    ),
    "a wrong type in a component": (
        '.comp A<T> { .decl p(x: T) p("a"). } .init a = A<number>',
        "type-mismatch",
        '"a"',
        "number",
    ),
    "types of two instances": (
        """.comp C { .type T <: symbol .decl p(x: T) } .init a = C .init b = C
        a.p(x) :- b.p(x).""",
        "type-mismatch",
        "x",
        "b.T, which is no subtype of a.T",
    ),
    "a cycle through a negation": (
        ".comp A { .decl p(x: number) .decl q(x: number) p(1) :- !q(1). q(1) :- p(1). } .init a=A",
        "not-stratified",
        "q(1)",
        "a.p → !a.q → a.p",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_wrong_with_components(name: str) -> None:
    program, code, marked, message = ERRORS[name]
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(program)
        error = caught.value
        assert (error.code, error.text) == (code, program)
        assert error.span is not None
        assert program[error.span.start : error.span.end] == marked
        assert message in error.message


def lines(results: harken.database.results.Results) -> list[str]:
    return [line for result in results for line in result.lines()]


def test_changes_of_an_instance_are_monitored() -> None:
    with harken.connect() as db:
        db.datalog(GRAPH + ".init g = Graph<number> g.edge(1, 2). g.edge(2, 3). .monitor g.reach")
        told = db.datalog("-g.edge(2, 3). +g.edge(3, 1). .commit")
        assert sorted(lines(told)) == [
            "+g.reach(3, 1)",
            "+g.reach(3, 2)",
            "-g.reach(1, 3)",
            "-g.reach(2, 3)",
        ]


def test_a_monitor_inside_is_one_of_each_instance() -> None:
    with harken.connect() as db:
        db.datalog(".comp C { .decl p(x: number) .monitor p } .init a = C .init b = C")
        assert lines(db.datalog("+a.p(1). +b.p(2).")) == ["+a.p(1)", "+b.p(2)"]


def test_files_of_an_instance(tmp_path: Path) -> None:
    (tmp_path / "g.edge.facts").write_text("1\t2\n2\t3\n")
    program = GRAPH.replace("}", ".input edge .output reach }")
    with harken.connect() as db:
        db.datalog(program + ".init g = Graph<number>", facts=tmp_path, output=tmp_path)
    assert (tmp_path / "g.reach.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_an_instance_in_sql() -> None:
    with harken.connect() as db:
        db.datalog(GRAPH + ".init Road = Graph<symbol>")
        db.sql("""INSERT INTO "Road.edge" VALUES ('a', 'b'), ('b', 'c')""")
        found = db.sql("""SELECT r.b FROM "road.reach" AS r WHERE r.a = 'a' ORDER BY r.b""")
        assert found.rows == [("b",), ("c",)]


def test_an_instance_without_attributes_in_sql() -> None:
    with harken.connect() as db:
        db.datalog(".comp C { .decl ready() ready(). } .init c = C")
        assert db.sql('SELECT ready FROM "c.ready"').rows == [(True,)]


def test_a_database_that_is_opened_again_knows_its_instances(tmp_path: Path) -> None:
    program = (
        GRAPH.replace("{", "{ .type Short <: Node", 1)
        + """
        .comp Odd<N> : Graph<N> {
            .decl odd(s: symbol, x: float)
            odd(cat("\\"", s), -1.5e30 * x) :- edge(a, _), s = to_string(a),
                (!reach(a, a); 2 < count : { edge(_, a) }), x = to_float(strlen(s)) ^ 2.0.
        }
        .init g = Odd<number>  g.edge(1, 2). g.edge(2, 3).
        """
    )
    path = tmp_path / "kept.harken"
    with harken.connect(path) as db:
        before = db.datalog(program + "?- g.odd(s, x).").rows
        assert [s for s, _ in before] == ['"1', '"2']
    with harken.connect(path) as db:
        assert db.datalog("?- g.odd(s, x).").rows == before
        assert db.datalog("+g.edge(3, 4). ?- g.reach(3, x).").rows == [(4,)]
        db.datalog(program)  # the same again changes nothing
        assert len(db.datalog("?- g.odd(s, x).").rows) == 3


def test_components_of_an_earlier_text() -> None:
    with harken.connect() as db:
        db.datalog(".comp A { .decl p(x: number) p(1). }")
        db.datalog(".comp B : A { p(2). }")
        assert db.datalog(".init b = B ?- b.p(x).").rows == [(1,), (2,)]


def test_an_error_in_a_component_of_an_earlier_text_is_where_it_is_used() -> None:
    text = "\n\n.init a = A<number>"
    with harken.connect() as db:
        db.datalog('.comp A<T> { .decl p(x: T) p("a"). }')
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(text)
        assert (caught.value.line, caught.value.code) == (3, "type-mismatch")


RULES = (
    "p(1, -2, 3u, 1.5, -1.0e-30, 1.0e300).",
    r'p("a\"b\\c\n\t\r", _, x).',
    "p(x), q() :- r(x), (s(x); !t(x, _), x < -y), !(x + 1) * 2 = 3.",
    "p(x) :- x = -(y ^ 2) ^ -z, bnot x = lnot (y bshru 3 band 2), true, !false.",
    'p(x) :- x = sum (y * 2) : { q(y), !(r(y); s(y)) } + count : r(_), match(x, "a").',
    'p(min(x, 1), max(y, 2, 3)) :- 1 < min (x) : { a.b.q(x) }, contains("a", substr(x, 0, 1)).',
    "p(as(x, a.T)) :- a.p(x), (x < 1, y > 2), z = (x - y) - (1 - 2).",
    ".type a.T <: number",
    ".type a.T = number | b.U",
)


@pytest.mark.parametrize("text", RULES)
def test_what_is_written_is_read_again(text: str) -> None:
    (statement,) = parse(text).statements
    written = write(statement)  # type: ignore[arg-type]
    assert parse(written).statements == (statement,)
    assert write(parse(written).statements[0]) == written  # type: ignore[arg-type]


def test_a_program_without_components_stays_as_it_is() -> None:
    program = parse(".decl p(x: number) p(1).")
    assert expand(program) is program
