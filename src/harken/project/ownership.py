"""What a database remembers of the projects that were applied to it: a table like any other.

Law: a project owns what it created or took over, and no project drops what none owns.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.api.database import Database

TABLE = "harken_project"
CREATE = f"""CREATE TABLE IF NOT EXISTS {TABLE} (
    project STRING, kind STRING, name STRING, language STRING NOT NULL, meaning STRING NOT NULL,
    removal STRING NOT NULL, kept STRING NOT NULL, place INT NOT NULL,
    PRIMARY KEY (project, kind, name))"""


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str
    name: str
    language: str
    """The language in which it is dropped."""
    meaning: str
    removal: str
    kept: str
    """The text in the catalog when it was applied."""
    place: int
    """Later definitions may depend on earlier ones."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name


def read_record(db: Database, project: str) -> dict[tuple[str, str], Entry]:
    if not is_there(db):
        return {}
    rows = db.sql(
        f"SELECT kind, name, language, meaning, removal, kept, place FROM {TABLE} "
        "WHERE project = ? ORDER BY place",
        [project],
    ).rows
    return {(row[0], row[1]): Entry(*row) for row in rows}


def owners(db: Database, project: str) -> dict[tuple[str, str], str]:
    """Which definitions other projects own."""
    if not is_there(db):
        return {}
    rows = db.sql(f"SELECT kind, name, project FROM {TABLE} WHERE project <> ?", [project]).rows
    return {(kind, name): owner for kind, name, owner in rows}


def is_there(db: Database) -> bool:
    return any(each.table == TABLE for each in db.definitions())


def write_record(db: Database, project: str, entries: list[Entry]) -> None:
    db.sql(CREATE)
    db.sql(f"DELETE FROM {TABLE} WHERE project = ?", [project])
    rows = [
        (project, e.kind, e.name, e.language, e.meaning, e.removal, e.kept, e.place)
        for e in entries
    ]
    if rows:
        db.load(TABLE, rows)
