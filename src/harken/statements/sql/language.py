"""SQL as a language of Harken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harken.database.catalog import Catalog
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.ir.clauses import Definition
from harken.ir.schema import Function
from harken.lang.sql.parser import cut, is_closed
from harken.statements.completing import Candidates, KnownNames, Place
from harken.statements.declaration import Declaration
from harken.statements.language_registry import SessionParts, UsualFormat, register
from harken.statements.sql.declared import declarations
from harken.statements.sql.name_completion import complete
from harken.statements.sql.rechecking import recheck
from harken.statements.sql.session import SqlSession
from harken.statements.sql.view_clauses import translate_view

HELP = """\
Statements end with `;` and may take several lines:

  CREATE TABLE item (name STRING PRIMARY KEY, quantity INT);
  INSERT INTO item VALUES ('pen', 12), ('ink', 3);
  CREATE VIEW low AS SELECT name FROM item WHERE quantity < 10;
  SELECT * FROM low;
  BEGIN; UPDATE item SET quantity = 20 WHERE name = 'ink'; COMMIT;

  amosql       what follows is AMOSQL     datalog      what follows is Datalog
  help         this                       quit, exit   leave (also Ctrl-D)

Outside of BEGIN and COMMIT every statement is committed at once.
docs/sql.md has the whole language."""

_WORDS = (
    "ALTER AND AS ASC BEGIN BETWEEN BY CASE CASCADE CAST CHECK COMMIT CREATE CROSS "
    "DEFAULT DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN "
    "FOREIGN FROM FULL GROUP HAVING IN INNER INSERT INTERSECT INTO IS JOIN KEY LEFT "
    "LIKE LIMIT MATERIALIZED MERGE NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION "
    "PRIMARY RECURSIVE REFERENCES REFRESH REPLACE RETURNING RIGHT ROLLBACK SELECT SET "
    "SHOW TABLE TABLES THEN UNION UNIQUE UPDATE USING VALUES VIEW VIEWS WHEN WHERE "
    "WITH"
)
KEYWORDS = tuple(_WORDS.split())
"""The words that Harken's statements begin with or consist of, not all that SQL reserves."""


class Sql(UsualFormat):
    name = SQL
    title = "SQL"
    suffixes: tuple[str, ...] = (".sql",)
    help = HELP
    quote = "'"
    end = ";"

    def session(self, parts: SessionParts) -> SqlSession:
        return SqlSession(
            parts.runtime, parts.transactions, parts.materialized, parts.continual, parts.sources
        )

    def is_complete(self, text: str) -> bool:
        return is_closed(text)

    def split(self, text: str) -> list[tuple[int, str]]:
        try:
            return cut(text)
        except HarkenError:  # running it reports the error
            return [(0, text)]

    def complete(self, place: Place, names: KnownNames) -> Candidates:
        return complete(place, names, KEYWORDS)

    def monitoring(self, text: str) -> None:
        return None

    def declarations(self, text: str) -> Iterable[Declaration]:
        return declarations(text)

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        return translate_view(function, catalog)[0]

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        return recheck(runtime, function)

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        """Column types are the only limits of a table."""


register(Sql())
