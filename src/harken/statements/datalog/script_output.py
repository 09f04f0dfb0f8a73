"""The results of Datalog scripts: the rows of an output, and the changes of a relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harken.database.results import Result, to_json

RULER, CLOSING = "-" * 15, "=" * 15


@dataclass(frozen=True, slots=True)
class Output(Result):
    """All rows of a relation, framed by its name; `written` are its lines as in a file, `heading`
    the names of its attributes."""

    relation: str = ""
    heading: str | None = None
    written: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        names = [] if self.heading is None else [self.heading]
        return [RULER, self.relation, *names, CLOSING, *self.written, CLOSING]

    def json_lines(self) -> list[str]:
        return [
            to_json(
                {
                    "kind": "rows",
                    "relation": self.relation,
                    **self.json_columns(),
                    "rows": self.json_rows(),
                }
            )
        ]


@dataclass(frozen=True, slots=True)
class Size(Result):
    """The name of a relation and the number of its rows."""

    def lines(self) -> list[str]:
        return [f"{name}\t{size}" for name, size in self.rows]


@dataclass(frozen=True, slots=True)
class Changed(Result):
    """`rows` were inserted, `minus` were deleted."""

    relation: str = ""
    minus: tuple[tuple[Any, ...], ...] = ()

    def lines(self) -> list[str]:
        gone = Result("rows", (), list(self.minus), self._name)
        return [
            *(self._line("-", line) for line in gone.quoted_rows()),
            *(self._line("+", line) for line in self.quoted_rows()),
        ]

    def _line(self, sign: str, row: str) -> str:
        return f"{sign}{self.relation}({row})"

    def json_lines(self) -> list[str]:
        gone = Result("rows", (), list(self.minus), self._name)
        change = {"kind": "change", "view": self.relation}
        return [to_json({**change, "plus": self.json_rows(), "minus": gone.json_rows()})]
