"""The demonstration tells the truth, and its script is a program like any other."""

import io
from importlib.resources import files

import pytest
from rich.console import Console

import harken
from harken.demo import language as demo


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(demo, "MANY", 1_000)
    output = io.StringIO()
    demo.play(Console(file=output, width=100))
    return output.getvalue()


def test_the_story(story: str) -> None:
    assert "│ shoelaces   │      150 │       140 │" in story
    assert "│ shoelaces │      130 │       140 │    9,870 │" in story
    assert "[unknown-function] there is no function quantiy" in story
    assert "hint: did you mean quantity?" in story
    assert "As ObjectLog:" in story
    assert "harken shell" in story


def test_it_is_plain_text_where_there_is_no_terminal(story: str) -> None:
    assert "\x1b" not in story


def test_one_in_a_hundred_is_low(story: str) -> None:
    """And the soles."""
    counts = [line.strip("│ ") for line in story.splitlines() if line.strip(" │").isdigit()]
    assert counts == ["11", "110"]


def test_the_script_runs_by_itself() -> None:
    script = files("harken.demo").joinpath("inventory.amosql").read_text("utf-8")
    with harken.connect() as db:
        assert db.amosql(script).rows == [("soles", 9, 14, 91)]
