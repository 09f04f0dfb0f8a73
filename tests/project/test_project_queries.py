"""The continual queries of a project."""

from pathlib import Path

import pytest

import harken
from harken.project.applying import apply_project
from harken.project.plan_lines import lines
from harken.project.project_files import read_project

YAML = """
queries:
  dear:
    query: SELECT symbol FROM stock WHERE price > 60
    trigger: EVERY DAY AT '08:00'
    priority: 3
    notify: [LOG]
"""


def write(directory: Path, text: str) -> None:
    (directory / "t.sql").write_text("CREATE TABLE stock (symbol STRING PRIMARY KEY, price INT);")
    (directory / "project.yml").write_text(f"name: shop\n{text}")


def apply(db: harken.Database, directory: Path) -> list[str]:
    return list(lines(apply_project(db, read_project(directory))))


def test_a_query_is_installed_altered_and_dropped(tmp_path: Path) -> None:
    write(tmp_path, YAML)
    with harken.connect() as db:
        assert f"  + continual query dear  ({tmp_path}/project.yml:5)" in apply(db, tmp_path)
        first = db.continual("dear").status
        assert (first.clauses.priority, first.executions) == (3, 1)
        assert apply(db, tmp_path)[0].startswith("shop: nothing to do")
        write(tmp_path, YAML.replace("08:00", "9:00"))
        assert apply(db, tmp_path)[1].startswith("  ~ continual query dear")
        altered = db.continual("dear").status
        assert (altered.id, altered.executions) == (first.id, 1)
        write(tmp_path, "")
        assert apply(db, tmp_path)[1].startswith("  - continual query dear")
        assert db.continual_queries.list() == []


def test_queries_that_the_project_did_not_install_stay(tmp_path: Path) -> None:
    write(tmp_path, YAML)
    with harken.connect() as db:
        db.continual("own", "SELECT 1 AS n")
        apply(db, tmp_path)
        write(tmp_path, "")
        apply(db, tmp_path)
        assert [each.name for each in db.continual_queries.list()] == ["own"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trigger:", "triger:", "no triger"),
        ("EVERY DAY", "EVERY FULL MOON", "EVERY"),
        ("price > 60", "cost > 60", "cost"),
    ],
)
def test_a_wrong_query_has_a_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    write(tmp_path, YAML.replace(old, new))
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError, match=rf"(?s){said}.*project.yml:\d+"):
            apply(db, tmp_path)
        assert db.continual_queries.list() == []
