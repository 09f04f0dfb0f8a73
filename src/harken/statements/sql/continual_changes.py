"""The statements about continual queries: CREATE, ALTER, DROP, PAUSE, SHOW and the others."""

from __future__ import annotations

from collections.abc import Callable

from harken.continual import clause_texts
from harken.continual.continual_queries import ContinualQueries
from harken.continual.words import Reader
from harken.database.runtime import Runtime
from harken.errors import SyntaxFault
from harken.lang.sql.continual_statements import Continual
from harken.lang.sql.parser import Statement

Changing = Callable[[Callable[[], None]], None]


class ContinualStatements:
    def __init__(self, runtime: Runtime, continual: ContinualQueries, changing: Changing) -> None:
        self._runtime, self._continual, self._changing = runtime, continual, changing

    def run(self, statement: Statement) -> None:
        node = statement.node
        assert isinstance(node, Continual)
        reader = Reader(statement.text, statement.offset)
        match node.verb:
            case "CREATE":
                self._changing(lambda: self._create(reader))
            case "DROP":
                self._changing(lambda: self._drop(reader))
            case _:
                raise SyntaxFault(
                    f"{node.verb} CONTINUAL QUERY is not there", code="syntax", span=statement.span
                )

    def _create(self, reader: Reader) -> None:
        reader.need("CREATE")
        replaces = reader.takes("OR", "REPLACE")
        reader.need("CONTINUAL", "QUERY")
        skips = reader.takes("IF", "NOT", "EXISTS")
        name = None if reader.sees("AS") else reader.need_name("the name of the query")
        reader.need("AS")
        parts = clause_texts.parts_of(*reader.rest())
        clauses = clause_texts.clauses_of(parts, self._continual.kinds)
        known = None if name is None else self._continual.queries.named(name)
        if known is not None and skips:
            return
        if known is not None and replaces:
            self._continual.drop(known)
        self._continual.install(name, clauses, parts[0].base)

    def _drop(self, reader: Reader) -> None:
        reader.need("DROP", "CONTINUAL", "QUERY")
        skips = reader.takes("IF", "EXISTS")
        name = reader.need_name("the name of a continual query")
        reader.need_end("DROP CONTINUAL QUERY")
        known = self._continual.queries.named(name)
        if known is None and skips:
            return
        self._continual.drop(self._continual.queries.need(name))
