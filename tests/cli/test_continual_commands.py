"""`harken cq`, from installing to dropping."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import harken
from harken.cli import app

Cq = Callable[..., str]


@pytest.fixture
def cq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cq:
    monkeypatch.chdir(tmp_path)
    with harken.connect("shop.db") as db:
        db.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, price DOUBLE)")
        db.sql("INSERT INTO stock VALUES ('IBM', 100)")

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["cq", *words, "--db", "shop.db"])
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_a_query_from_installing_to_dropping(cq: Cq, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        "CREATE CONTINUAL QUERY dear AS SELECT symbol FROM stock WHERE price > 50 "
        "TRIGGER EVERY MONDAY AT '08:00' NOTIFY FILE 'out.jsonl'"
    )
    assert cq("install", "q.sql").startswith("dear (cq")
    assert "EVERY MONDAY AT '08:00'" in cq("list")
    with harken.connect("shop.db") as db:
        db.sql("INSERT INTO stock VALUES ('SAP', 120)")
    assert cq("run", "dear") == "dear: changed, +1 -0\n"
    assert "requested" in cq("history", "dear")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    cq("mute", "dear")
    cq("snooze", "dear", "--until", "2 hours")
    shown = json.loads(cq("show", "dear", "--format", "json"))
    assert (shown["muted"], shown["executions"], shown["snoozed"] is None) == (True, 2, False)
    cq("pause", "dear")
    cq("mute", "dear", "--off")
    cq("resume", "dear")
    cq("drop", "dear")
    assert cq("list") == ""


def test_export_edit_import(cq: Cq, tmp_path: Path) -> None:
    (tmp_path / "in.yml").write_text(
        "queries:\n  dear:\n    query: SELECT symbol FROM stock\n    trigger: every 20 minutes\n"
    )
    assert cq("import", "in.yml") == "dear: installed\n"
    cq("export", "-o", "out.yml")
    text = (tmp_path / "out.yml").read_text()
    assert "trigger: EVERY 20 MINUTES" in text
    assert cq("import", "out.yml") == "dear: unchanged\n"
    (tmp_path / "out.yml").write_text(text.replace("20 MINUTES", "DAY"))
    assert cq("import", "out.yml") == "dear: altered\n"


def test_samples(cq: Cq, tmp_path: Path) -> None:
    (tmp_path / "in.yml").write_text(
        "queries:\n  dear:\n    query: SELECT symbol FROM stock\n    notify: LOG\n"
    )
    assert "symbol: IBM" in cq("test", "in.yml")
    assert cq("list") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "nobody"), "no continual query nobody"),
        (("install", "none.sql"), "cannot be read"),
        (("import", "bad.yml"), "has no queries"),
        (("snooze", "x", "--until", "soon"), "no continual query x"),
    ],
)
def test_errors(cq: Cq, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "bad.yml").write_text("queries: 3")
    assert said in cq(*words, code=1)
