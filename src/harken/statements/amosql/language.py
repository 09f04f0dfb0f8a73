"""AMOSQL as a language of Harken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harken.database.catalog import Catalog
from harken.database.language_names import AMOSQL
from harken.database.runtime import Runtime
from harken.ir.clauses import Definition
from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql.keywords import KEYWORDS
from harken.lang.amosql.statement_shapes import split
from harken.statements.amosql.build import Builder
from harken.statements.amosql.declared import declarations
from harken.statements.amosql.definitions import check_function, translate_function
from harken.statements.amosql.function_syntax import syntax_of
from harken.statements.amosql.outside_calls import call
from harken.statements.amosql.session import Session
from harken.statements.completing import Candidates, KnownNames, Place
from harken.statements.declaration import Declaration
from harken.statements.language_registry import SessionParts, UsualFormat, register
from harken.statements.procedure_calls import register as register_call

HELP = """\
Statements end with `;` and may take several lines:

  create type item properties (name charstring, quantity integer);
  create item(name, quantity) instances :pen("pen", 12), :ink("ink", 3);
  select name(i), quantity(i) for each item i where quantity(i) < 10;
  set quantity(:ink) = 20;
  select name(f), definition(f) for each function f;      what functions there are

  commit;      keep what was changed      rollback;    undo it
  sql          what follows is SQL        datalog      what follows is Datalog
  help         this                       quit, exit   leave (also Ctrl-D)

The star in `harken*>` says that something is not committed; leaving rolls it back.
Tab completes names. Ctrl-C drops what you are typing or stops the statement that runs.
docs/amosql.md has the whole language."""


class Amosql(UsualFormat):
    name = AMOSQL
    title = "AMOSQL"
    suffixes: tuple[str, ...] = (".amosql",)
    help = HELP
    quote = '"'
    end = ";"

    def session(self, parts: SessionParts) -> Session:
        return Session(parts.runtime, parts.transactions, parts.rules)

    def is_complete(self, text: str) -> bool:
        """Whether a new statement begins right after this text. The parser's splitter decides: it
        knows strings, comments and `begin ... end`.

        >>> amosql = Amosql()
        >>> [amosql.is_complete(each) for each in ("select 1;", "begin commit;", 'print(";')]
        [True, False, False]
        """
        closings = "\nend;" * (text.lower().count("begin") + 1)
        return any(piece.offset == len(text) + 1 for piece in split(text + closings))

    def split(self, text: str) -> list[tuple[int, str]]:
        return [(each.offset, each.text) for each in split(text)]

    def complete(self, place: Place, names: KnownNames) -> Candidates:
        if place.word.startswith(":"):
            yield "variable", (f":{name}" for name in names.variables())
            return
        yield "function", names.functions()
        yield "type", names.types()
        yield "keyword", KEYWORDS

    def monitoring(self, text: str) -> None:
        return None

    def declarations(self, text: str) -> Iterable[Declaration]:
        return declarations(text)

    def clauses(self, function: Function, catalog: Catalog) -> tuple[Definition, ...]:
        return translate_function(function, catalog)[0]

    def recheck(self, runtime: Runtime, function: Function) -> bool:
        catalog = runtime.catalog
        if function.kind is FunctionKind.PROCEDURE:
            builder = Builder(runtime.engine, catalog, function=function)
            builder.procedure_body(function, syntax_of(function))
            return False
        if function.kind is not FunctionKind.DERIVED:
            return False
        _, single = check_function(function, catalog)
        relation = function.relation
        if function.of_rule or relation is None or single == (relation.key is not None):
            return False
        catalog.mark_single_valued(function, single)
        return True

    def check_rows(self, function: Function, rows: Sequence[tuple[Any, ...]]) -> None:
        """Column types are the only limits of a stored function."""


register(Amosql())
register_call(call)
