"""First loads show how far they are on a terminal, and nowhere else."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import harken
from harken.pipeline import progress_bars as bars


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_first_load_has_a_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER", 0)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps([{"id": i} for i in range(20)]))
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=80)
    with harken.connect(":memory:") as db, bars.progress_bars(db, console):
        db.source("price", "json", path=prices)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert ("loading price" in shown, "20/20" in shown) == (is_terminal, is_terminal)


def test_a_load_of_unknown_length_has_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER", 0)
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with harken.connect(":memory:") as db, bars.progress_bars(db, console):
        told = db.internals.engine.progress
        assert told is not None
        told("items", 10, 0)
        told("items", 30, 0)
        told("others", 30, 20)
    assert isinstance(console.file, io.StringIO)
    assert "loading items" in console.file.getvalue()
