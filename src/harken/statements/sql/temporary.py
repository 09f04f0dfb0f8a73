"""The temporary tables and views of a session, dropped when it ends.

Until then they are like others. They are identified by their objects in the catalog, because DROP,
ROLLBACK or ALTER TABLE may give a name another meaning.

Law: only what was created as temporary in this session is among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.errors import NameFault
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement


class Temporary:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._names: dict[int, str] = {}

    def names(self) -> list[str]:
        """The names of those that exist, oldest first."""
        return [each.name for each in sorted(self._there(), key=lambda each: each.oid)]

    def _there(self) -> Iterator[Function]:
        for function in self._runtime.catalog.functions() if self._names else ():
            if function.language == SQL and self._names.get(function.oid) == function.name:
                yield function

    def check(self, statement: Statement) -> None:
        """Something permanent must not be replaced by something temporary."""
        node = statement.node
        assert isinstance(node, exp.Create)
        named = node.find(exp.Table)
        if not (_is_temporary(node) and node.args.get("replace")) or named is None:
            return
        known = SqlTables(self._runtime.catalog).function(named.name)
        if known is not None and known.name not in self.names():
            raise NameFault(
                f"there is already a view {known.name}, and it is not temporary",
                code="exists",
                span=statement.place(named),
                hint="give the temporary view another name",
            )

    def note(self, node: exp.Create) -> None:
        """Something was created, temporary or permanent."""
        named = node.find(exp.Table)
        assert named is not None
        function = SqlTables(self._runtime.catalog).function(named.name)
        if function is None:
            return
        if _is_temporary(node):
            self._names[function.oid] = function.name
        else:
            self._names.pop(function.oid, None)

    @contextmanager
    def staying(self, node: exp.Alter) -> Iterator[None]:
        """What ALTER TABLE rebuilds is as temporary as it was before."""
        names = self.names()
        yield
        renamed = node.find(exp.AlterRename)
        called = {node.this.name.lower(): renamed.this.name.lower()} if renamed is not None else {}
        tables = SqlTables(self._runtime.catalog)
        for name in names:
            function = tables.function(called.get(name, name))
            if function is not None:
                self._names[function.oid] = function.name

    def clear(self) -> None:
        self._names.clear()


def _is_temporary(node: exp.Create) -> bool:
    return node.find(exp.TemporaryProperty) is not None
