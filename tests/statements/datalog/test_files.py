"""Fact files and output files, as Soufflé reads and writes them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import harken
from harken.statements.datalog.session import DatalogWarning


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
    "line feeds in quotes, and empty values": (
        '"a\nb",1\r\n,2\n"",3',
        "x: symbol, y: number",
        "(rfc4180=true)",
        [("", 2), ("", 3), ("a\nb", 1)],
    ),
    "quotes and a long delimiter": (
        '"a; b"; 1\n',
        "x: symbol, y: number",
        '(rfc4180=true, delimiter="; ")',
        [("a; b", 1)],
    ),
    "some columns, in another order": (
        "1\ta\t2\n",
        "x: number, y: number",
        '(columns="2:0")',
        [(2, 1)],
    ),
    "another name": ("3\n", "x: number", '(IO=file, filename="r.facts")', [(3,)]),
    "unsigned, float and other bases": (
        "0x1f\t3\t-1.5e3\n",
        "x: number, y: unsigned, z: float",
        "",
        [(31, 3, -1500.0)],
    ),
    "no attributes": ("()\n", "", "", [()]),
    "no attributes, and an empty line": ("\n", "", "", [()]),
    "no attributes, and an empty line after the fact": ("()\n\n", "", "", [()]),
    "no attributes, and no line": ("", "", "", []),
    "a byte-order mark": ("\ufeffa\nb\n", "x: symbol", "", [("a",), ("b",)]),
    "a byte-order mark before a number": ("\ufeff1\n", "x: number", "", [(1,)]),
    "quotes that stand for themselves": ('"a"\n', "x: symbol", "", [('"a"',)]),
}


@pytest.mark.parametrize("name", FILES)
def test_reading(name: str, tmp_path: Path) -> None:
    text, declaration, parameters, expected = FILES[name]
    assert read(text, declaration, parameters, tmp_path) == expected


BAD_FILES = {
    "a column that is not there": (
        "1\n",
        "x: number",
        '(columns="1")',
        "bad-value",
        "line 1: there is no column 1",
    ),
    "more columns than attributes": (
        "1\t2\n",
        "x: number",
        '(columns="0:1")',
        "bad-value",
        "r has 1 attribute, but 2 columns",
    ),
    "columns that are none": ("", "x: number", '(columns="a")', "bad-value", "which columns"),
    "no delimiter": ("", "x: number", '(delimiter="")', "bad-value", "cannot be separated"),
    "a quote that does not end": (
        '1\n"2\n',
        "x: symbol",
        "(rfc4180=true)",
        "bad-value",
        "line 2: a value in quotes",
    ),
    "a number as in Python": ("1_000\n", "x: number", "", "bad-value", '"1_000" is not a number'),
    "a float as in Python": ("1_0.5\n", "x: float", "", "bad-value", '"1_0.5" is not a float'),
    "no number": ("1\na\n", "x: number", "", "bad-value", 'line 2: "a" is not a number'),
    "no float": ("a\n", "x: float", "", "bad-value", '"a" is not a float'),
    "an infinite float": ("inf\n", "x: float", "", "bad-value", '"inf" is not a finite float'),
    "too few values": ("1\n", "x: number, y: number", "", "bad-value", "this line has 1 value"),
    "below zero": ("-1\n", "x: unsigned", "", "bad-value", "-1 is not unsigned"),
    "too large": ("9223372036854775808\n", "x: number", "", "bad-value", "64 bits"),
    "a number of 5,000 digits": ("9" * 5000, "x: number", "", "bad-value", "5,000 digits"),
    "columns beyond counting": ("", "x: number", f'(columns="{"9" * 5000}")', "bad-value", "which"),
    "a name that no file has": ("", "x: number", '(filename="\0")', "cannot-read", "cannot be"),
    "another form": ("", "x: number", "(IO=sqlite)", "unsupported", "IO=sqlite"),
    "an unknown parameter": ("", "x: number", "(compress=true)", "unsupported", "compress"),
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


def test_values_that_no_attribute_is_for(tmp_path: Path) -> None:
    with pytest.warns(DatalogWarning, match="line 2: r has 1 attribute, but this line has 2"):
        assert read("1\n2\ta\n3\tb\n", "x: number", "", tmp_path) == [(1,), (2,), (3,)]


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("1\té\n".encode())))
    with harken.connect() as db:
        (output,) = db.datalog(
            '.decl r(x: number, y: symbol) .input r(IO=stdin) .output r(IO=stdout, delimiter=",")',
            output=tmp_path,
        )
    assert output.lines()[1:4] == ["r", "===============", "1,é"]
    assert not list(tmp_path.iterdir())


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


def test_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
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
