"""Whoever runs programs finds their language in the registry, and a new one needs nothing else."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import cli
from harken.database.catalog import Catalog
from harken.database.runtime import Runtime
from harken.ir.clauses import Definition
from harken.ir.schema import Function
from harken.shell.loop import Loop
from harken.statements import language_registry
from harken.statements.language_registry import (
    NO_OPTIONS,
    RunOptions,
    SessionParts,
    language_named,
    language_of_suffix,
    languages,
)


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
    name = "plain"
    title = "Plain text"
    suffixes: tuple[str, ...] = (".plain",)
    help = "Write what you like."
    keywords: tuple[str, ...] = ()

    def session(self, parts: SessionParts) -> Session:
        return Session(parts)

    def is_complete(self, text: str) -> bool:
        return text.endswith("\n")

    def split(self, text: str) -> list[tuple[int, str]]:
        return [(0, text)]

    def monitoring(self, text: str) -> tuple[int, str]:
        return 0, ""

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        return ()

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        return False

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        pass


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(language_registry._LANGUAGES, "plain", Plain())


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
    assert "good morning" in out
    assert Plain.help in out
    assert "again" in out
    assert not loop.failed
    assert loop.language == "plain"
