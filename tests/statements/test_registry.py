"""Whoever runs programs finds their language in the registry, and a new one needs nothing else."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import harken
from harken import cli
from harken.database.catalog import Catalog
from harken.database.results import Result
from harken.database.runtime import Runtime
from harken.ir.clauses import Definition
from harken.ir.schema import Function
from harken.shell.completion import NameCompleter
from harken.shell.loop import Loop
from harken.statements.completing import Candidates, KnownNames, Place
from harken.statements.language_registry import (
    NO_OPTIONS,
    RunOptions,
    SessionParts,
    language_named,
    language_of_suffix,
    languages,
    register,
    withdraw,
)
from tests.harness.syntax import nodes


@pytest.mark.parametrize(
    ("name", "suffix", "title"),
    [("amosql", ".amosql", "AMOSQL"), ("sql", ".sql", "SQL"), ("datalog", ".dl", "Datalog")],
)
def test_a_language_is_found_by_its_name_and_its_suffix(name: str, suffix: str, title: str) -> None:
    found = language_of_suffix(suffix)
    assert found is language_named(name)
    assert found.title == title


def test_what_is_no_language_is_not_found() -> None:
    assert language_of_suffix(".txt") is None
    with pytest.raises(harken.NameFault, match="there is no language latin") as raised:
        harken.connect().run_program("latin", "", print)
    assert all(each.name in (raised.value.hint or "") for each in languages())


def test_programs_of_all_languages_work_on_the_same_data() -> None:
    db, results = harken.connect(), harken.Results()
    db.run_program("sql", "CREATE TABLE edge (x STRING, y STRING)", print)
    db.run_program("datalog", '+edge("a", "b").', print)
    db.run_program("amosql", "select edge();", results.append)
    assert results.rows == [("a", "b")]


class Session:
    """Every line is a text that is shown."""

    def __init__(self, parts: SessionParts) -> None:
        self._runtime = parts.runtime

    def run(self, text: str, options: RunOptions = NO_OPTIONS) -> None:
        for line in text.split("\n"):
            if line.strip():
                self._runtime.emit("print", (), [(line.strip(),)], ())

    def close(self) -> None:
        pass


class Plain:
    """A toy language, which is usable everywhere by being registered."""

    name = "plain"
    title = "Plain text"
    suffixes: tuple[str, ...] = (".plain",)
    help = "Write what you like."
    quote = '"'
    end = "."

    def session(self, parts: SessionParts) -> Session:
        return Session(parts)

    def is_complete(self, text: str) -> bool:
        return text.endswith("\n")

    def split(self, text: str) -> list[tuple[int, str]]:
        return [(0, text)]

    def complete(self, place: Place, names: KnownNames) -> Candidates:
        yield "greeting", ("good morning", "good night")
        yield "table", names.tables()

    def format(self, result: Result, *, as_json: bool = False) -> list[str]:
        return result.json_lines() if as_json else [f"* {line}" for line in result.lines()]

    def monitoring(self, text: str) -> tuple[int, str]:
        return 0, ""

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        return ()

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        return False

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        pass


@pytest.fixture
def plain() -> Iterator[None]:
    language = Plain()
    register(language)
    yield
    withdraw(language)


def harken_command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["harken", *map(str, arguments)])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.usefixtures("plain")
def test_run_takes_a_new_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "words.plain"
    program.write_text("good\nmorning\n")
    assert harken_command(monkeypatch, "run", program, "--format", "json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["values"] for line in lines] == [["good"], ["morning"]]


@pytest.mark.usefixtures("plain")
def test_watch_takes_a_new_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "words.plain"
    program.write_text("good\n")
    changes = tmp_path / "changes.jsonl"
    changes.write_text("{}\n")
    assert harken_command(monkeypatch, "watch", program, "--changes", changes) == 0
    assert '{"kind":"commit","transaction":1}' in capsys.readouterr().out


@pytest.mark.usefixtures("plain")
def test_the_shell_takes_a_new_language(capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(harken.connect())
    loop.read(io.StringIO("plain\ngood morning\nhelp\nsql SELECT 1 AS one;\nplain again\n"))
    out = capsys.readouterr().out
    assert "* good morning" in out
    assert Plain.help in out
    assert "again" in out
    assert not loop.failed
    assert loop.language == "plain"


@pytest.mark.usefixtures("plain")
def test_completion_asks_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE goose (n INT)")

    def found(text: str) -> list[str]:
        completer = NameCompleter(db, lambda: "plain")
        return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

    assert found("so goo") == ["good morning", "good night", "goose"]
    assert found('"goo') == []
    assert found("sq") == ["sql"]  # the commands of the shell, at the beginning


@pytest.mark.usefixtures("plain")
def test_run_shows_a_result_as_the_language_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "words.plain"
    program.write_text("good\n")
    assert harken_command(monkeypatch, "run", program) == 0
    assert capsys.readouterr().out == "* good\n"


KNOWS_ONE_LANGUAGE = {
    "dbapi/statement_kinds.py": "DB-API speaks SQL alone; begins transactions before changes",
}
"""Modules that look into texts which are of one language anyway."""
SNIFFS = re.compile(r"\b(CREATE|SELECT|INSERT|create (view|table|function|rule)|\.decl)\b")


def sniffing(source: str) -> list[int]:
    """The lines on which a text is asked whether it begins like, or matches, words of a
    language."""
    return [
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("startswith", "match", "search", "fullmatch", "compile")
        and any(
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and SNIFFS.search(part.value)
            for part in ast.walk(node)
        )
    ]


def test_nothing_sniffs_a_language_from_a_text() -> None:
    """Files say it by their suffix, definitions by the catalog, people by its name."""
    root = Path(harken.__file__).parent
    found = {
        str(path.relative_to(root)): lines
        for path in root.glob("**/*.py")
        if (lines := sniffing(path.read_text("utf-8")))
    }
    assert found.keys() == KNOWS_ONE_LANGUAGE.keys(), found
    assert sniffing('text.upper().startswith("SELECT")') == [1]
