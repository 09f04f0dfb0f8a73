"""UNIQUE, CHECK and FOREIGN KEY: a query for each, whose rows are what breaks it.

UNIQUE (a)        SELECT a FROM t WHERE a IS NOT NULL GROUP BY a HAVING count(*) > 1
CHECK (c)         SELECT * FROM t WHERE NOT (c)
FOREIGN KEY (a)   SELECT a FROM t WHERE a IS NOT NULL
REFERENCES u (b)      AND NOT EXISTS (SELECT 1 FROM u WHERE u.b = t.a)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from harken.consumers.constraints.constraints import WatchedConstraint
from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, is_table
from harken.errors import IntegrityError, LanguageError, TypeFault, counted
from harken.ir.assemble import assemble
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import unknown_column, unknown_table
from harken.planner.prepare import prepare
from harken.statements.sql.view_clauses import translate_query


@dataclass(frozen=True, slots=True)
class Constraint:
    """`said` is the constraint as written, `query` finds the violations, `parent` is the table it
    refers to, and `referred` the columns there that its own `columns` refer to."""

    said: str
    query: exp.Expr
    parent: str | None = None
    columns: tuple[str, ...] = ()
    referred: tuple[str, ...] = ()


# --- from syntax to queries ----------------------------------------------------------------


def declared(schema: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr | None]]:
    """The constraints of CREATE TABLE, each with the column that it follows."""
    for each in schema.expressions:
        match each:
            case exp.ColumnDef():
                for one in each.constraints:
                    yield one.args["kind"], each
            case exp.Constraint():
                for one in each.expressions:
                    yield one, None
            case _:
                yield each, None


def constraints_of(statement: Statement, catalog: Catalog) -> list[Constraint]:
    """The constraints that a CREATE TABLE declares."""
    node = statement.node
    schema = node.this
    if not isinstance(schema, exp.Schema):
        return []
    table = schema.this.name.lower()
    columns = [e.name.lower() for e in schema.expressions if isinstance(e, exp.ColumnDef)]
    found = []
    for each, column in declared(schema):
        match each:
            case exp.UniqueColumnConstraint():
                names = [column.name] if column is not None else _names(each.this.expressions)
                found.append(_unique(table, _known(names, columns, table, statement)))
            case exp.CheckColumnConstraint():
                found.append(_check(table, each, statement))
            case exp.ForeignKey() | exp.Reference():
                own = [column.name] if column is not None else _names(each.expressions)
                reference = each if isinstance(each, exp.Reference) else each.args["reference"]
                _known(own, columns, table, statement)
                found.append(_foreign_key(table, own, reference, statement, catalog))
    return found


def _names(nodes: Iterable[exp.Expr]) -> list[str]:
    return [each.name.lower() for each in nodes]


def _known(
    names: Sequence[str], columns: Sequence[str], table: str, statement: Statement
) -> list[str]:
    lowered = [name.lower() for name in names]
    unknown = next((name for name in lowered if name not in columns), None)
    if unknown is not None:
        raise unknown_column(table, unknown, columns, statement.span)
    return lowered


def _present(table: str, names: Sequence[str]) -> exp.Expr:
    tests = [exp.column(name, table=table).is_(exp.Null()).not_() for name in names]
    return exp.and_(*tests)


def _unique(table: str, names: Sequence[str]) -> Constraint:
    columns = [exp.column(name, table=table) for name in names]
    query = exp.select(*columns).from_(exp.to_table(table)).where(_present(table, names))
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    query = query.group_by(*(each.copy() for each in columns)).having(several)
    return Constraint(f"UNIQUE ({', '.join(names)})", query, columns=tuple(names))


def _check(table: str, node: exp.Expr, statement: Statement) -> Constraint:
    if node.find(exp.Query, exp.AggFunc, exp.Window) is not None:
        raise LanguageError(
            "CHECK concerns one row: it cannot contain queries or aggregates",
            code="unsupported",
            span=statement.place(node),
        )
    query = exp.select("*").from_(exp.to_table(table)).where(exp.not_(node.this.copy()))
    return Constraint(f"CHECK ({node.this.sql('spark')})", query)


def _foreign_key(
    table: str, own: Sequence[str], node: exp.Expr, statement: Statement, catalog: Catalog
) -> Constraint:
    if node.args.get("options"):
        raise LanguageError(
            f"{' '.join(map(str, node.args['options']))} is not supported",
            code="unsupported",
            span=statement.span,
            hint="a rule can do this",
        )
    target = node.this
    parent = (target.this if isinstance(target, exp.Schema) else target).name.lower()
    given = _names(target.expressions) if isinstance(target, exp.Schema) else []
    keys = _keys_of(parent, table, statement, catalog)
    names = given or next(iter(keys), [])
    if sorted(names) not in [sorted(key) for key in keys]:
        raise IntegrityError(
            f"{parent} may have several rows with the same {', '.join(names)}"
            if names
            else f"{parent} has no PRIMARY KEY to refer to",
            code="not-unique",
            span=statement.span,
            hint="refer to its PRIMARY KEY, or to columns that are UNIQUE",
        )
    if len(names) != len(own):
        raise TypeFault(
            f"{counted(len(own), 'column')} {'refers' if len(own) == 1 else 'refer'} to "
            f"{len(names)}",
            code="arity",
            span=statement.span,
            hint=f"name the columns of {parent}",
        )
    pairs = zip(own, names, strict=True)
    same = (
        exp.EQ(this=exp.column(n, table="parent"), expression=exp.column(o, table=table))
        for o, n in pairs
    )
    there = exp.select("1").from_(exp.alias_(exp.to_table(parent), "parent", table=True))
    query = exp.select(*(exp.column(name, table=table) for name in own))
    query = query.from_(exp.to_table(table)).where(_present(table, own))
    query = query.where(exp.not_(exp.Exists(this=there.where(exp.and_(*same)))))
    said = f"FOREIGN KEY ({', '.join(own)}) REFERENCES {parent} ({', '.join(names)})"
    return Constraint(said, query, parent, tuple(name.lower() for name in own), tuple(names))


def _keys_of(parent: str, table: str, statement: Statement, catalog: Catalog) -> list[list[str]]:
    """The columns that identify the rows of a table: its key first, then UNIQUE columns."""
    if parent == table:
        return _unique_columns(statement)
    tables = SqlTables(catalog)
    function = tables.function(parent)
    if function is None:
        raise unknown_table(tables, parent, statement.span, "table")
    key = [column.name for column in function.parameters]
    found = [key] if key and not function.bag else []
    if is_table(function):
        found += map(list, _unique_columns_of(function.text))
    return found


@lru_cache(maxsize=256)
def _unique_columns_of(definition: str) -> tuple[tuple[str, ...], ...]:
    """Those of a CREATE TABLE that is kept: it is read once, however often it is asked for."""
    return tuple(map(tuple, _unique_columns(statements(definition)[0])))


def keys_of(table: str, catalog: Catalog, statement: Statement) -> list[list[str]]:
    """The columns that identify the rows of a table, each once."""
    found = _keys_of(table, "", statement, catalog)
    return [key for i, key in enumerate(found) if sorted(key) not in map(sorted, found[:i])]


def _unique_columns(statement: Statement) -> list[list[str]]:
    keys, unique = [], []
    for each, column in declared(statement.node.this):
        match each:
            case exp.PrimaryKey():
                keys.append(_names(each.expressions))
            case exp.PrimaryKeyColumnConstraint() if column is not None:
                keys.append([column.name.lower()])
            case exp.UniqueColumnConstraint() if column is not None:
                unique.append([column.name.lower()])
            case exp.UniqueColumnConstraint():
                unique.append(_names(each.this.expressions))
    return [*keys, *unique]


def compile_constraints(function: Function, catalog: Catalog) -> list[WatchedConstraint]:
    """The constraints of a table as views; raises if one is invalid."""
    if not is_table(function) or not _may_have(function.text):
        return []
    (statement,) = statements(function.text)
    made = []
    for number, each in enumerate(constraints_of(statement, catalog)):
        owner = f"constraint {function.name} {number}"
        query = translate_query(statement, each.query, catalog, owner, stored=function.text)
        program = assemble(query.rows.relation, query.definitions.values(), catalog)
        prepare(program, catalog.hierarchy)
        made.append(
            WatchedConstraint(program=program, table=function.name, said=each.said, number=number)
        )
    return made


@lru_cache(maxsize=1024)
def _may_have(text: str) -> bool:
    (statement,) = statements(text)
    schema = statement.node.this
    kinds = exp.UniqueColumnConstraint | exp.CheckColumnConstraint | exp.ForeignKey | exp.Reference
    return isinstance(schema, exp.Schema) and any(
        isinstance(each, kinds) for each, _ in declared(schema)
    )
