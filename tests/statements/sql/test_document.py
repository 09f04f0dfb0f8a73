"""The table of docs/sql.md says what the code does."""

from pathlib import Path

from tests.statements.sql.constructs import table

PAGE = Path(__file__).parents[3] / "docs/sql.md"


def test_how_changes_are_found() -> None:
    begin, end = "<!-- made by tests/statements/sql/constructs.py -->\n", "\n<!-- end -->"
    shown = PAGE.read_text("utf-8").split(begin)[1].split(end)[0]
    assert shown == table()
