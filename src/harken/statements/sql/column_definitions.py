"""The columns of CREATE TABLE and its key, from `(name TYPE NOT NULL, ..., PRIMARY KEY (...))`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from harken.errors import LanguageError, NameFault, TypeFault, nearest
from harken.ir.relations import Column
from harken.lang.sql.parser import Statement
from harken.lang.sql.type_names import type_of

CONSTRAINTS = (
    exp.UniqueColumnConstraint,
    exp.CheckColumnConstraint,
    exp.ForeignKey,
    exp.Reference,
)
"""Those that are watched: see `constraints`."""


def columns_of(schema: exp.Schema, statement: Statement) -> tuple[tuple[Column, ...], list[str]]:
    """The columns, and the names of the key columns."""
    columns: list[Column] = []
    key: list[str] = []
    keys = 0
    for each in schema.expressions:
        match each:
            case exp.ColumnDef():
                column, is_key = _column(each, statement)
                if column.name in [known.name for known in columns]:
                    raise TypeFault(
                        f"two columns are called {column.name}",
                        code="exists",
                        span=statement.place(each),
                    )
                columns.append(column)
                key += [column.name] if is_key else []
                keys += is_key
            case exp.PrimaryKey():
                key += [one.name.lower() for one in each.expressions]
                keys += 1
            case exp.Constraint(expressions=[exp.PrimaryKey() as named]):
                key += [one.name.lower() for one in named.expressions]
                keys += 1
            case exp.UniqueColumnConstraint() | exp.CheckColumnConstraint() | exp.ForeignKey():
                pass
            case exp.Constraint(expressions=[one]) if isinstance(one, CONSTRAINTS):
                pass
            case exp.Identifier():
                raise _without_type(each, statement)
            case _:
                raise LanguageError(
                    f"the constraint {each.sql('spark')} is not supported",
                    code="unsupported",
                    span=statement.place(each),
                    hint=_instead(each),
                )
    if keys > 1:
        raise TypeFault(
            "a table has one PRIMARY KEY",
            code="exists",
            span=statement.place(schema),
            hint="for a key of several columns: PRIMARY KEY (a, b)",
        )
    names = [column.name for column in columns]
    unknown = next((name for name in key if name not in names), None)
    if unknown is not None:
        near = nearest(unknown, names)
        raise NameFault(
            f"there is no column {unknown} for the key",
            code="unknown-column",
            span=statement.place(schema),
            hint=f"did you mean {near}?" if near else None,
        )
    if not columns:
        raise LanguageError("a table needs columns", code="syntax", span=statement.span)
    return tuple(
        replace(column, type=column.type.or_null(False)) if column.name in key else column
        for column in columns
    ), list(dict.fromkeys(key))


def with_key(
    columns: tuple[Column, ...], key: list[str], statement: Statement
) -> tuple[tuple[Column, ...], list[str]]:
    """KEY (...) at the end of the statement means the same as PRIMARY KEY among the columns."""
    names = [column.name for column in columns]
    unknown = next((each for each in statement.key if each not in names), None)
    if key or unknown is not None:
        raise TypeFault(
            "a table has one key" if key else f"there is no column {unknown} for the key",
            code="exists" if key else "unknown-column",
            span=statement.span,
        )
    found = [
        replace(each, type=each.type.or_null(False)) if each.name in statement.key else each
        for each in columns
    ]
    return tuple(found), list(dict.fromkeys(statement.key))


def _without_type(node: exp.Expr, statement: Statement) -> TypeFault:
    return TypeFault(
        f"the column {node.name} has no type", code="syntax", span=statement.place(node)
    )


def _column(node: exp.ColumnDef, statement: Statement) -> tuple[Column, bool]:
    kind = node.args.get("kind")
    if kind is None:
        raise _without_type(node, statement)
    type_ = type_of(kind, statement.place(node))
    nullable, is_key = True, False
    for each in node.constraints:
        match each.args.get("kind"):
            case exp.NotNullColumnConstraint() as constraint:
                nullable = bool(constraint.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint():
                is_key = True
            case exp.DefaultColumnConstraint() | exp.CommentColumnConstraint():
                pass
            case constraint if isinstance(constraint, CONSTRAINTS):
                pass
            case _:
                raise LanguageError(
                    f"the constraint {each.sql('spark')} is not supported",
                    code="unsupported",
                    span=statement.place(node),
                    hint=_instead(each),
                )
    return Column(node.name.lower(), type_.or_null(nullable)), is_key


def _instead(constraint: exp.Expr) -> str:
    numbered = (exp.AutoIncrementColumnConstraint, exp.GeneratedAsIdentityColumnConstraint)
    if constraint.find(*numbered) is not None:
        return "whoever inserts a row gives it its key: a number, or uuid()"
    return "PRIMARY KEY, NOT NULL, DEFAULT, UNIQUE, CHECK and FOREIGN KEY are"
