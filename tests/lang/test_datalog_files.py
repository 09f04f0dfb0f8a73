"""Fact files and output files, as Soufflé reads and writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken


def read(text: str, declaration: str, parameters: str, tmp_path: Path) -> list[tuple[object, ...]]:
    (tmp_path / "r.facts").write_bytes(text.encode())
    text = f".decl r({declaration}) .input r{parameters} .output r"
    with harken.connect() as db:
        return db.datalog(text, facts=tmp_path).rows


FILES = {
    "tabs": ("1\ta b\n2\t\n", "x: number, y: symbol", "", [(1, "a b"), (2, "")]),
    "no line end at the end": ("1\n2", "x: number", "", [(1,), (2,)]),
    "an empty file": ("", "x: number", "", []),
    "a line of an empty symbol": ("\na\n", "x: symbol", "", [("",), ("a",)]),
    "line ends of Windows": ("1\r\n2\r\n", "x: number", "", [(1,), (2,)]),
    "rows that repeat": ("1\n1\n", "x: number", "", [(1,)]),
    "another delimiter": ("1,2\n", "x: number, y: number", '(delimiter=",")', [(1, 2)]),
    "a long delimiter": ("1::2\n", "x: number, y: number", '(delimiter="::")', [(1, 2)]),
    "headers": ("x\n7\n", "x: number", "(headers=true)", [(7,)]),
    "quotes": ('"a,b","c ""d"""\n', "x: symbol, y: symbol", "(rfc4180=true)", [("a,b", 'c "d"')]),
    "another name": ("3\n", "x: number", '(IO=file, filename="r.facts")', [(3,)]),
    "unsigned, float and other bases": (
        "0x1f\t3\t-1.5e3\n",
        "x: number, y: unsigned, z: float",
        "",
        [(31, 3, -1500.0)],
    ),
    "no attributes": ("()\n", "", "", [()]),
    "quotes that stand for themselves": ('"a"\n', "x: symbol", "", [('"a"',)]),
}


@pytest.mark.parametrize("name", FILES)
def test_reading(name: str, tmp_path: Path) -> None:
    text, declaration, parameters, expected = FILES[name]
    assert read(text, declaration, parameters, tmp_path) == expected


BAD_FILES = {
    "too many values": ("1\t2\n", "x: number", "", "bad-value", "line 1: r has 1 attribute"),
    "no number": ("1\na\n", "x: number", "", "bad-value", 'line 2: "a" is not a number'),
    "no float": ("a\n", "x: float", "", "bad-value", '"a" is not a float'),
    "an infinite float": ("inf\n", "x: float", "", "bad-value", '"inf" is not a finite float'),
    "too few values": ("1\n", "x: number, y: number", "", "bad-value", "this line has 1 value"),
    "below zero": ("-1\n", "x: unsigned", "", "bad-value", "-1 is not unsigned"),
    "too large": ("9223372036854775808\n", "x: number", "", "bad-value", "64 bits"),
    "another form": ("", "x: number", "(IO=sqlite)", "unsupported", "IO=sqlite"),
    "an unknown parameter": ("", "x: number", "(columns=2)", "unsupported", "columns"),
    "no attributes": ("1\n", "", "", "bad-value", "has ()"),
    "no such file": ("", "x: number", '(filename="no")', "cannot-read", "cannot be read"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_wrong(name: str, tmp_path: Path) -> None:
    text, declaration, parameters, code, message = BAD_FILES[name]
    with pytest.raises(harken.HarkenError) as caught:
        read(text, declaration, parameters, tmp_path)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.line == 1


def test_writing(tmp_path: Path) -> None:
    outputs = """
        .decl r(name: symbol, n: number, x: float)
        r("b", -1, 0.5). r("a", 2, 3).
        .output r
        .output r(filename="r.txt", delimiter=", ", headers=true)
        .output r(filename="sub/r.csv", rfc4180=true)
        .decl nothing()
        nothing().
        .output nothing
    """
    with harken.connect() as db:
        assert db.datalog(outputs, output=tmp_path) == []
    assert (tmp_path / "r.csv").read_text() == "a\t2\t3\nb\t-1\t0.5\n"
    assert (tmp_path / "r.txt").read_text() == "name, n, x\na, 2, 3\nb, -1, 0.5\n"
    assert (tmp_path / "sub/r.csv").read_text() == '"a",2,3\n"b",-1,0.5\n'
    assert (tmp_path / "nothing.csv").read_text() == "()\n"


def test_parameters_are_for_all_relations_before_them(tmp_path: Path) -> None:
    for name, text in (("p", "1;2\n"), ("q", "3;4\n"), ("r", "5\t6\n")):
        (tmp_path / f"{name}.facts").write_text(text)
    program = """
        .decl p, q, r(x: number, y: number)
        .input p, q(delimiter=";"), r
        ?- p(x, y); q(x, y); r(x, y).
    """
    with harken.connect() as db:
        assert db.datalog(program, facts=tmp_path).rows == [(1, 2), (3, 4), (5, 6)]


def test_what_is_written_in_quotes_is_read_again(tmp_path: Path) -> None:
    program = '.decl r(x: symbol, n: number) r("a \\"b\\", c\\n", 1). .output r(rfc4180=true)'
    again = '.decl r(x: symbol, n: number) .input r(filename="r.csv", rfc4180=true) ?- r(x, n).'
    with harken.connect() as db:
        db.datalog(program, output=tmp_path)
    with harken.connect() as db:
        assert db.datalog(again, facts=tmp_path).rows == [('a "b", c\n', 1)]


def test_words_behind_a_declaration_that_are_directives_now(tmp_path: Path) -> None:
    (tmp_path / "p.facts").write_text("1\n2\n")
    program = ".decl p(x: number) input .decl q(x: number) output printsize q(x + 1) :- p(x)."
    with harken.connect() as db:
        (size,) = db.datalog(program, facts=tmp_path, output=tmp_path)
        assert size.rows == [("q", 2)]
    assert (tmp_path / "q.csv").read_text() == "2\n3\n"


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "r.csv").mkdir()
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(".decl r(x: number) r(1). .output r", output=tmp_path)
        assert caught.value.code == "cannot-write"
        with pytest.raises(harken.HarkenError):
            db.datalog("?- r(x).")


def test_input_of_a_derived_relation(tmp_path: Path) -> None:
    (tmp_path / "q.facts").write_text("5\n")
    with harken.connect() as db:
        program = ".decl p, q(x: number) p(1). q(x) :- p(x). .input q .output q"
        assert db.datalog(program, facts=tmp_path).rows == [(1,), (5,)]
