"""The shell at a real pseudo-terminal, as a person sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

import harken
from tests.harness.patience import PATIENCE

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][0AB]|\x1b[=>78]|\x1b\][^\x07]*\x07")
PROMPT = r"(?:sql|amosql|datalog)\*?>\s*$"
UP, CTRL_C, CTRL_D, CTRL_R = "\x1b[A", "\x03", "\x04", "\x12"


class Terminal:
    def __init__(self, python: Path, home: Path, *options: str) -> None:
        self.home = home
        self._child = pexpect.spawn(
            str(python),
            ["-m", "harken", "shell", "--db", str(home / "shop.db"), *options],
            env={
                "HOME": str(home),
                "PATH": "/usr/bin:/bin",
                "TERM": "xterm",
                "PAGER": "cat",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                "LANG": "C.UTF-8",
            },
            encoding="utf-8",
            dimensions=(24, 100),
            timeout=PATIENCE,
        )

    def shown(self, until: str = PROMPT) -> str:
        """What comes on the screen until a prompt, without colours."""
        text = ""
        while not re.search(until, text[-400:] if text else ""):
            self._child.expect(r".+")
            text = ESCAPES.sub("", text + self._child.after).replace("\r", "")
        return text

    def type(self, text: str) -> None:
        self._child.send(text)

    def run(self, line: str) -> str:
        """The screen after a line, from what follows it on."""
        self.type(f"{line}\r")
        mark = r"\n(?:.|\n)*" + PROMPT
        return self.shown(mark).rpartition(line)[2]

    def ended(self) -> int:
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus)

    def kill(self) -> None:
        self._child.close(force=True)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path, warm_python: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(*options: str) -> Terminal:
        opened.append(Terminal(warm_python, tmp_path, *options))
        opened[-1].shown()
        return opened[-1]

    yield start
    for each in opened:
        each.kill()


CREATE = "CREATE TABLE item (name STRING PRIMARY KEY, quantity INT);"
INSERT = "INSERT INTO item VALUES ('pen', 12), ('ink', NULL);"


def test_sql_comes_first_and_rows_are_a_table(terminal: Open) -> None:
    shell = terminal()
    assert "ok (" in shell.run(CREATE)
    shell.run(INSERT)
    shown = shell.run("SELECT * FROM item ORDER BY name;")
    table = " name | quantity\n------+----------\n ink  |     NULL\n pen  |       12\n2 rows ("
    assert table in shown


def test_an_open_transaction_is_said_and_asked_about(terminal: Open, tmp_path: Path) -> None:
    shell = terminal()
    shell.run(CREATE)
    assert ", transaction open" in shell.run("BEGIN;")
    assert ", transaction open" in shell.run(INSERT)
    assert "transaction open" in shell.run("SELECT nope FROM item;")
    shell.type(CTRL_D)
    shell.shown("Commit it, roll it back, or stay")
    shell.type("\r")
    shell.shown(r"sql\*>\s*$")
    shell.type(CTRL_D)
    shell.shown("Commit it, roll it back, or stay")
    shell.type("c\r")
    assert shell.ended() == 0
    with harken.connect(tmp_path / "shop.db") as db:
        assert len(db.sql("SELECT * FROM item").rows) == 2


def test_what_is_typed_is_in_the_history_after_ctrl_c(terminal: Open) -> None:
    shell = terminal()
    shell.type("SELECT 'half typed")
    shell.shown("half typed")
    shell.type(CTRL_C)
    shell.shown(PROMPT)
    shell.type(UP)
    shell.shown("SELECT 'half typed")


def test_the_language_is_remembered(terminal: Open) -> None:
    shell = terminal()
    shell.run("\\datalog")
    shell.type(CTRL_D)
    assert shell.ended() == 0
    again = terminal()
    assert "datalog>" in again.run(".decl p(x: number)")
    assert "sql>" in terminal("--language", "sql").run("SELECT 1;")


def test_backslash_commands(terminal: Open) -> None:
    shell = terminal()
    shell.run(CREATE)
    shell.run("CREATE VIEW low AS SELECT name FROM item WHERE quantity < 5;")
    assert " item | table\n low  | view\n" in shell.run("\\d")
    assert "item" not in shell.run("\\dv").replace("\\dv", "")
    described = shell.run("\\d item")
    assert " quantity | BIGINT" in described
    assert "read by the view low" in described
    assert "times are off" in shell.run("\\timing")
    assert "ok\n" in shell.run(INSERT)
    assert "did you mean \\timing?" in shell.run("\\tming")


def test_tab_completes_tables_and_columns(terminal: Open) -> None:
    shell = terminal()
    shell.run(CREATE)
    shell.type("SELECT quan")
    shell.shown("quan")
    shell.type(" FROM it\t")
    shell.shown("item")
    shell.type(" WHERE qua\t")
    assert "quantity" in shell.shown("quantity")


def test_watch_shows_a_query_again_until_ctrl_c(terminal: Open) -> None:
    shell = terminal()
    shell.run(CREATE)
    shell.type("SELECT count(*) AS n FROM item; \\watch 0.1\r")
    shell.shown("Ctrl-C ends this")
    with harken.connect(shell.home / "shop.db") as db:
        db.sql(INSERT)
    shell.shown(r"\n 2\n")
    shell.type(CTRL_C)
    shell.shown()
    assert "1 row" in shell.run("SELECT 1;")


def test_history_is_searched(terminal: Open) -> None:
    shell = terminal()
    shell.run(CREATE)
    shell.run("SELECT 1;")
    shell.type(f"{CTRL_R}CREATE")
    assert "CREATE TABLE item" in shell.shown("quantity INT")
