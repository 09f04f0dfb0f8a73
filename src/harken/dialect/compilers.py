"""How SQLAlchemy's expressions, types and tables are written in Harken's SQL.

What Harken's SQL does not support raises an error here, before anything runs.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.sql import compiler

_WORDS = """
all alter and any as asc between both by case cast check collate column constraint create
cross current_date current_timestamp default delete desc describe distinct drop else end
escape except exists explain false fetch filter for foreign from full grant group having in
index inner insert intersect interval into is join key lateral leading left like limit
materialized merge minus natural not null offset on or order outer over partition primary
qualify references refresh replace returning right rollback row rows select semi set show some
table then to trailing true truncate union unique unknown update using values view when where
window with
"""
RESERVED = frozenset(_WORDS.split())


class HarkenIdentifiers(compiler.IdentifierPreparer):
    """Names in backquotes, as in Spark, where double quotes mark a text."""

    reserved_words = RESERVED  # type: ignore[assignment]

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`")


class HarkenCompiler(compiler.SQLCompiler):
    def visit_true(self, expr: Any, **kw: Any) -> str:
        return "true"

    def visit_false(self, expr: Any, **kw: Any) -> str:
        return "false"

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left)} IS DISTINCT FROM {self.process(binary.right)}"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left)} IS NOT DISTINCT FROM {self.process(binary.right)}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} RLIKE {self.process(binary.right, **kw)}"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        raise exc.CompileError(
            "Harken has no FOR UPDATE: a transaction that changes something excludes all others"
        )

    def returning_clause(self, stmt: Any, returning_cols: Any, **kw: Any) -> str:
        columns = [
            self._label_returning_column(stmt, column, True, {})  # type: ignore[no-untyped-call]
            for column in returning_cols
        ]
        return "RETURNING " + ", ".join(columns)

    def update_from_clause(
        self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        kw["asfrom"] = True
        return "FROM " + ", ".join(each._compiler_dispatch(self, **kw) for each in extra_froms)

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        kw["asfrom"] = True
        return "USING " + ", ".join(each._compiler_dispatch(self, **kw) for each in extra_froms)


class HarkenDDLCompiler(compiler.DDLCompiler):
    def get_column_specification(self, column: Any, **kw: Any) -> str:
        if column.computed is not None or column.identity is not None:
            raise exc.CompileError(
                f"{column.table.name}.{column.name}: Harken has no computed or identity columns"
            )
        text = f"{self.preparer.format_column(column)} "
        text += self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        default = self.get_column_default_string(column)
        if default is not None:
            text += f" DEFAULT {default}"
        if not column.nullable:
            text += " NOT NULL"
        return text

    def visit_create_schema(self, create: Any, **kw: Any) -> str:
        raise exc.CompileError("Harken has no schemas: a database is one file")

    def visit_create_sequence(self, create: Any, prefix: Any = None, **kw: Any) -> str:
        raise exc.CompileError("Harken has no sequences: give the keys yourself")


class HarkenTypeCompiler(compiler.GenericTypeCompiler):
    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "INT"

    visit_SMALLINT = visit_INTEGER

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "DOUBLE"

    visit_REAL = visit_DOUBLE = visit_DOUBLE_PRECISION = visit_FLOAT

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        precision = 38 if type_.precision is None else type_.precision
        return f"DECIMAL({precision}, {10 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "STRING"

    visit_CHAR = visit_NVARCHAR = visit_NCHAR = visit_TEXT = visit_CLOB = visit_VARCHAR

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Harken has no type for a time of day: use a timestamp")

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Harken has no type for bytes: store them as text")

    visit_BINARY = visit_VARBINARY = visit_BLOB

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Harken has no type for JSON: store it as text")
