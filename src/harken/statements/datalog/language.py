"""Datalog as a language of Harken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harken.database.catalog import Catalog
from harken.database.language_names import DATALOG
from harken.database.runtime import Runtime
from harken.ir.assemble import assemble
from harken.ir.clauses import Definition
from harken.ir.schema import Function, FunctionKind
from harken.lang.datalog import syntax
from harken.lang.datalog.components import expand
from harken.lang.datalog.parser import is_closed, parse
from harken.planner.prepare import prepare
from harken.statements.completing import Candidates, KnownNames, Place
from harken.statements.datalog.bounds import check_bounds
from harken.statements.datalog.declared import declarations
from harken.statements.datalog.relation_clauses import translate_relation
from harken.statements.datalog.session import DatalogSession
from harken.statements.declaration import Declaration
from harken.statements.language_registry import SessionParts, UsualFormat, register

HELP = """\
Facts, rules and queries end with a dot and may take several lines:

  .decl edge(x: symbol, y: symbol)
  .decl path(x: symbol, y: symbol)
  path(x, y) :- edge(x, y).
  path(x, z) :- path(x, y), edge(y, z).
  +edge("a", "b").             a fact comes        -edge("a", "b").    and goes
  ?- path("a", x).             a query             .monitor path       tell of changes

  amosql       what follows is AMOSQL     sql          what follows is SQL
  help         this                       quit, exit   leave (also Ctrl-D)

What you enter is committed at once, unless a transaction of AMOSQL or SQL is open.
docs/datalog.md has the whole language."""

KEYWORDS = (
    *("activate", "priority", "refraction", "resolution", "rule", "run", "semantics", "timestamps"),
    *("commit", "comp", "decl", "init", "input", "limitsize", "monitor", "output", "printsize"),
    *("type", "number", "symbol", "unsigned", "float", "count", "max", "mean", "min", "sum"),
)
"""Directives without their dot, types and aggregates."""


class Datalog(UsualFormat):
    name = DATALOG
    title = "Datalog"
    suffixes: tuple[str, ...] = (".dl",)
    help = HELP
    quote = '"'
    end = "."

    def session(self, parts: SessionParts) -> DatalogSession:
        return DatalogSession(parts.runtime, parts.transactions, parts.monitor, parts.programs)

    def is_complete(self, text: str) -> bool:
        return is_closed(text)

    def split(self, text: str) -> list[tuple[int, str]]:
        """The statements of a text may be in any order, so it runs as a whole."""
        return [(0, text)]

    def complete(self, place: Place, names: KnownNames) -> Candidates:
        yield "relation", names.functions()
        yield "keyword", KEYWORDS

    def monitoring(self, text: str) -> tuple[int, str]:
        names = list(dict.fromkeys(_watched(text)))
        return len(names), "\n".join(f".monitor {name}" for name in names)

    def declarations(self, text: str) -> Iterable[Declaration]:
        return declarations(text)

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        return translate_relation(function, catalog)[0]

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        if function.kind is FunctionKind.DERIVED:
            catalog = runtime.catalog
            clauses, _ = translate_relation(function, catalog)
            prepare(assemble(clauses[0].relation, clauses, catalog), catalog.hierarchy)
        return False

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        check_bounds(function, rows)


def _watched(text: str) -> Iterator[str]:
    """The relations that a program monitors or outputs."""
    for each in expand(parse(text)).statements:
        if isinstance(each, syntax.Monitor) or (
            isinstance(each, syntax.Directive) and each.kind == "output"
        ):
            yield each.relation


register(Datalog())
