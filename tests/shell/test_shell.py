"""The shell, fed by a pipe and by a terminal."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

import harken
from harken.database.language_names import AMOSQL
from harken.shell import start
from harken.shell.completion import NameCompleter
from harken.shell.highlight import KEYWORDS, tokens
from harken.shell.interactive import history, interact, prompt_text
from harken.shell.loop import Loop

ITEMS = """\
create type item properties (name charstring, quantity integer);
create item(name, quantity) instances :pen("pen", 12), :ink("ink", 3);
"""
PROCEDURE = """\
create function greet() -> boolean as
begin
  if 1 = 1 then print("a;");
  else begin print("b"); end;
  end if;
end;
"""


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as database:
        yield database


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "help",
        "quit ;",
        "select 1;",
        "select 1; /* ; */ ",
        "print('begin'); ",
        "begin begin commit; end; end;",
        ITEMS,
        PROCEDURE,
    ],
)
def test_complete(db: harken.Database, text: str) -> None:
    assert Loop(db, AMOSQL).is_complete(text)


@pytest.mark.parametrize(
    "text",
    ["select 1", "select 1; select", "print(';", "select 1; /* ;", "create function f() ->"]
    + [PROCEDURE[:end] for end in range(1, len(PROCEDURE) - 2) if PROCEDURE[end] == "\n"]
    + ["begin begin commit; end;"],
)
def test_not_complete(db: harken.Database, text: str) -> None:
    assert not Loop(db, AMOSQL).is_complete(text)


# --- from a pipe ---------------------------------------------------------------------------


def feed(db: harken.Database, text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return start(db, AMOSQL)


def test_statements_from_a_pipe(
    db: harken.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ITEMS + PROCEDURE + "greet(); commit;\nselect quantity(:ink)"
    assert feed(db, text, monkeypatch) == 0
    assert capsys.readouterr() == ("a;\n<3>\n", "")


def test_an_error_undoes_its_statement_only(
    db: harken.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ITEMS + "set quantity(:pen) = 5;\n  select 1/0;\nselect quantity(:pen); commit;"
    assert feed(db, text, monkeypatch) == 1
    out, err = capsys.readouterr()
    assert out == "<5>\n"
    assert err.startswith("4:3: [division-by-zero]")
    assert db.amosql("select quantity(:pen);").rows == [(5,)]


def test_uncommitted_changes_are_rolled_back_with_a_message(
    db: harken.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ITEMS + "commit; set quantity(:pen) = 5;\nexit\nset quantity(:pen) = 6; commit;"
    assert feed(db, text, monkeypatch) == 0
    assert "rolled back" in capsys.readouterr().err
    assert db.amosql("select quantity(:pen);").rows == [(12,)]


def test_a_bug_does_not_end_the_session(
    db: harken.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.delenv("HARKEN_DEBUG", raising=False)
    with monkeypatch.context() as patched:
        patched.setattr(harken.Database, "run_program", broken)
        Loop(db, AMOSQL).run("print(1);")
    assert "[internal] ZeroDivisionError: oops" in capsys.readouterr().err
    Loop(db, AMOSQL).run("print(1);")
    assert capsys.readouterr().out == "1\n"


def test_input_that_is_not_utf8(db: harken.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(harken.HarkenError, match="0xff in line 2"):
        feed(db, b"print(1);\nprint('\xff');\n", monkeypatch)


# --- at a terminal -------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PipeInput]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


ENTER, CTRL_C, CTRL_D = "\r", "\x03", "\x04"


def test_enter_continues_until_the_statement_ends(
    db: harken.Database,
    terminal: PipeInput,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    typed = ITEMS.replace("\n", ENTER) + PROCEDURE.replace("\n", ENTER)
    terminal.send_text(typed + f"help{ENTER}greet();{ENTER}selct{CTRL_C}")
    terminal.send_text(f"print({ENTER}quantity(:ink){ENTER});{ENTER}{CTRL_D}r{ENTER}")
    interact(db, AMOSQL)
    out, err = capsys.readouterr()
    assert err == ""
    assert "statements end with `;`" in out
    assert "\na;\n" in out
    assert "\n3\n" in out
    saved = list(FileHistory(str(tmp_path / ".harken_history")).load_history_strings())
    assert "greet();" in saved
    assert "print(\nquantity(:ink)\n);" in saved


def test_quit_leaves(db: harken.Database, terminal: PipeInput) -> None:
    terminal.send_text(f"quit{ENTER}")
    interact(db, AMOSQL)


def test_ctrl_c_stops_a_statement(
    db: harken.Database, terminal: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    db.foreign("stop", stop)
    db.amosql(ITEMS + "commit; set quantity(:pen) = 5;")
    terminal.send_text(f"begin set quantity(:pen) = 6; stop(); end;{ENTER}{CTRL_D}c{ENTER}")
    interact(db, AMOSQL)
    assert "stopped" in capsys.readouterr().err
    assert db.amosql("select quantity(:pen);").rows == [(5,)]


def test_the_prompt_shows_an_open_transaction(db: harken.Database) -> None:
    assert prompt_text(db, AMOSQL) == "amosql> "
    db.amosql(ITEMS)
    assert prompt_text(db, AMOSQL) == "amosql*> "
    db.commit()
    assert prompt_text(db, AMOSQL) == "amosql> "


def test_history_is_private_or_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert isinstance(history(path), FileHistory)
    assert path.stat().st_mode & 0o077 == 0
    assert isinstance(history(tmp_path / "none" / "history"), InMemoryHistory)


# --- completion and colours ----------------------------------------------------------------


def completions(db: harken.Database, text: str) -> list[str]:
    found = NameCompleter(db, lambda: AMOSQL).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_completion_knows_the_keywords_of_the_language_that_is_spoken(db: harken.Database) -> None:
    def found(language: str, text: str) -> list[str]:
        completer = NameCompleter(db, lambda: language)
        return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

    assert found("sql", "CREATE MATERI") == ["MATERIALIZED"]
    assert found("datalog", ".printsi") == ["printsize"]
    assert found("amosql", "for eac") == ["each"]


def test_completion_knows_what_there_is(db: harken.Database) -> None:
    db.amosql(ITEMS)
    assert completions(db, "select quan") == ["quantity"]
    assert completions(db, "for each ite") == ["item"]
    assert completions(db, "select name(:") == [":ink", ":pen"]
    assert completions(db, "SEL") == ["select"]
    assert completions(db, 'print("sel') == []
    assert db.in_transaction


def test_every_keyword_is_known() -> None:
    assert {"select", "else", "instances", "commit"} <= set(KEYWORDS)
    assert "semicolon" not in KEYWORDS


def test_colours_keep_the_text() -> None:
    text = ITEMS + PROCEDURE + "/* open"
    assert "".join(piece for _, piece in tokens(text)) == text
    assert ("variable", ":pen") in list(tokens(text))


def test_sql_and_back(db: harken.Database, capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(db, AMOSQL)
    loop.read(
        [
            "sql\n",
            "CREATE TABLE t (k INT PRIMARY KEY,\n",
            " s STRING); INSERT INTO t VALUES (1, 'a;b'), (2, NULL);\n",
            "SELECT * FROM t ORDER BY k;\n",
            "SELECT nope\n",
            "FROM t;\n",
            "amosql;\n",
            "t(1);\n",
        ]
    )
    told = capsys.readouterr()
    assert told.out == '<1, "a;b">\n<2, NULL>\n<"a;b">\n'
    assert "5:8: [unknown-column] there is no column nope" in told.err


def test_datalog_and_back(db: harken.Database, capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(db, AMOSQL)
    loop.read(
        [
            "datalog\n",
            ".decl p(x: number) inline\n",
            "+p(1). +p(\n",
            "  2).\n",
            "?- p(x),\n",
            "\n",
            "   x > 1.\n",
            "?- q(x).\n",
            "sql\n",
            "SELECT x FROM p WHERE x < 2;\n",
        ]
    )
    told = capsys.readouterr()
    assert told.out == "<2>\n<1>\n"
    assert told.err.startswith("2:20: `inline` has no effect\n8:4: [unknown-relation] there is no")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("p(1).", True),
        ("p(x) :- q(x);", False),
        (".decl p(x: number", False),
        (".decl p(x: number)", True),
        ("p(1) q", True),
        ("/* p(1).", False),
        ("sql", True),
        ("", True),
    ],
)
def test_complete_in_datalog(db: harken.Database, text: str, complete: bool) -> None:
    loop = Loop(db, AMOSQL)
    loop.run("datalog")
    assert loop.is_complete(text) is complete


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- ;", True),
        ("SELECT ';", False),
        ("SELECT 1", False),
        ("amosql", True),
        ("BEGIN;", True),
    ],
)
def test_complete_in_sql(db: harken.Database, text: str, complete: bool) -> None:
    loop = Loop(db, AMOSQL)
    loop.run("sql")
    assert loop.is_complete(text) is complete
    assert prompt_text(db, loop.language) == "sql> "


def test_a_language_may_be_named_before_its_statement(
    db: harken.Database, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "sql SELECT 5 AS n;\n",
        "SELECT\n",
        " 6;\n",
        "datalog .decl f(x: number) f(7). ?- f(x).\n",
        "amosql print(8);\n",
        "SQL SELECT nothing;\n",
    ]
    loop = Loop(db, AMOSQL)
    loop.read(lines)
    told = capsys.readouterr()
    assert [line for line in told.out.splitlines() if any(map(str.isdigit, line))] == [
        "<5>",
        "<6>",
        "<7>",
        "8",
    ]
    assert told.err.startswith("6:12: [unknown-column]")
