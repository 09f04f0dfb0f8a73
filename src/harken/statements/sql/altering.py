"""ALTER TABLE rebuilds the table with its rows.

A table is defined by the text of its CREATE TABLE; ALTER edits that text. Everything that depends
on the table is recompiled from its own text (`statements.dependents`): views, materialized views
with their rows, functions, rules, monitors, tables that refer to this one. If one of them no longer
works, the error names it and nothing is altered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from sqlglot import exp

from harken.database.function_tables import SqlTables, table_of
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.errors import HarkenError, IntegrityError, LanguageError, NameFault
from harken.ir.schema import Function
from harken.lang.sql.parser import DIALECT, Statement, statements
from harken.lang.sql.program_draft import unknown_column, unknown_table
from harken.lang.sql.type_names import type_name
from harken.statements.dependents import recheck, recheck_functions, recheck_watchers
from harken.statements.records import refuse_redefinition
from harken.statements.sql.dropping import drop_with_readers
from harken.statements.sql.reading import Reading
from harken.statements.sql.row_changes import defaults
from harken.statements.sql.table_creation import created_name, put_table, table_function
from harken.statements.sql.view_clauses import is_view, kind_of


@dataclass(slots=True)
class Edited:
    """A CREATE TABLE being edited: `old_names` maps new column names to old ones; `cascade` says
    whether views that no longer work are dropped."""

    node: exp.Create
    statement: Statement
    old_names: dict[str, str] = field(default_factory=dict)
    cascade: bool = False

    @property
    def schema(self) -> exp.Expr:
        found = self.node.this
        assert isinstance(found, exp.Expr)
        return found

    @property
    def columns(self) -> dict[str, exp.ColumnDef]:
        return {
            each.name.lower(): each
            for each in self.schema.expressions
            if isinstance(each, exp.ColumnDef)
        }

    def column(self, node: exp.Expr) -> exp.ColumnDef:
        name = node.name.lower()
        if name not in self.columns:
            place = self.statement.place(node)
            raise unknown_column(created_name(self.node), name, self.columns, place)
        return self.columns[name]


def alter(runtime: Runtime, statement: Statement) -> None:
    node = statement.node
    assert isinstance(node, exp.Alter)
    tables = SqlTables(runtime.catalog)
    known = tables.function(node.this.name)
    if known is None:
        if node.args.get("exists"):
            return
        raise unknown_table(tables, node.this.name, statement.place(node.this))
    _refuse(runtime, known, statement)
    (created,) = statements(known.text)
    assert isinstance(created.node, exp.Create)
    edited = Edited(created.node.copy(), statement)
    edited.old_names = {name: name for name in edited.columns}
    for action in node.args["actions"]:
        _edit(edited, action)
    if created_name(edited.node) != known.name:
        _refuse_renaming(runtime, known, statement)
    _redefine(runtime, known, _text(edited, created, statement), edited)


def is_alteration(runtime: Runtime, statement: Statement) -> bool:
    """Is it CREATE OR ALTER TABLE of a table that is there?"""
    node = statement.node
    if not isinstance(node, exp.Create) or str(node.args.get("kind", "")).upper() != "TABLE":
        return False
    words = [token.text.upper() for token in DIALECT.tokenize(statement.text)[:3]]
    known = SqlTables(runtime.catalog).function(created_name(node))
    return words == ["CREATE", "OR", "ALTER"] and known is not None


def reshape(runtime: Runtime, statement: Statement) -> None:
    """Let a table be what CREATE OR ALTER TABLE says, with its rows. Columns are known
    by their names; one of another type is refused, unless there are no rows."""
    node = statement.node
    assert isinstance(node, exp.Create)
    known = SqlTables(runtime.catalog).function(created_name(node))
    assert known is not None
    _refuse(runtime, known, statement)
    wanted = table_function(runtime, statement)
    if wanted.text == known.text:
        return
    edited = Edited(node, statement)
    before = {column.name for column in table_of(known).columns}
    edited.old_names = {name: name for name in edited.columns if name in before}
    if runtime.engine.count(_relation(known)):
        _refuse_other_types(known, wanted, statement)
    _redefine(runtime, known, wanted.text, edited)


def _refuse_other_types(known: Function, wanted: Function, statement: Statement) -> None:
    types = {column.name: column.type.or_null() for column in table_of(known).columns}
    for column in table_of(wanted).columns:
        before = types.get(column.name, column.type.or_null())
        if before != column.type.or_null():
            raise LanguageError(
                f"{known.name} cannot be altered: {column.name} is {type_name(before)}, and would "
                f"be {type_name(column.type)}",
                code="unsupported",
                span=statement.span,
                hint="add a column of that type, UPDATE it from this one, and drop this one",
            )


def _redefine(runtime: Runtime, known: Function, text: str, edited: Edited) -> None:
    """Redefine the table by the text, with its rows and everything that depends on it."""
    runtime.reactions.before_schema_change({known.name})
    try:
        function = table_function(runtime, statements(text)[0])
        _refuse_taken(runtime, function, known)
        rows = _rows(runtime, known, function, edited)
        _refuse_equal_keys(function, rows)
        put_table(runtime, function, known, rows)
    except HarkenError as error:
        error.message = f"{known.name} cannot be altered: {error.message}"
        error.span = edited.statement.span
        raise
    _recompile_dependents(runtime, function, edited)


def _refuse_equal_keys(function: Function, rows: list[tuple[Any, ...]]) -> None:
    width = len(function.parameters)
    if width and len({row[:width] for row in rows}) < len(rows):
        names = ", ".join(column.name for column in function.parameters)
        raise IntegrityError(f"there are rows with the same {names}", code="not-unique")


def _refuse_taken(runtime: Runtime, function: Function, known: Function) -> None:
    if function.name == known.name:
        return
    taken = SqlTables(runtime.catalog).function(function.name)
    if taken is not None:
        raise NameFault(f"there is already a {kind_of(taken)} {taken.name}", code="exists")


def _relation(function: Function) -> Any:
    assert function.relation is not None
    return function.relation


def _refuse(runtime: Runtime, function: Function, statement: Statement) -> None:
    refuse_redefinition(function)
    reason = None
    if is_view(function):
        reason = "it is a view: drop it, and create it again"
    elif function.language != SQL:
        reason = "it was not created in SQL"
    elif runtime.engine.is_in_lake(_relation(function)):
        reason = "its rows are in the lake, where each version keeps its own columns"
    if reason is not None:
        raise LanguageError(
            f"{function.name} cannot be altered: {reason}", code="unsupported", span=statement.span
        )


def _refuse_renaming(runtime: Runtime, known: Function, statement: Statement) -> None:
    """Other texts mention a table by its name, and nobody edits them."""
    catalog = runtime.catalog
    users = [each.name for each in catalog.dependents(known.name) if each.id != known.id]
    users += [f"rule {each}" for each in catalog.rules_that_call(known.name)]
    users += [each.title for each in runtime.monitors.users_of(known)]
    if users:
        raise IntegrityError(
            f"{known.name} cannot be renamed: {', '.join(sorted(set(users)))} "
            f"{'mentions' if len(set(users)) == 1 else 'mention'} it",
            code="in-use",
            span=statement.span,
            hint="drop those first, and create them again",
        )


# --- editing -------------------------------------------------------------------------------


def _edit(edited: Edited, action: exp.Expr) -> None:
    match action:
        case exp.ColumnDef() if not action.args.get("position"):
            _add(edited, action)
        case exp.Schema():
            for each in action.expressions:
                _edit(edited, each)
        case exp.Drop() if str(action.args.get("kind")).upper() == "COLUMN":
            for each in action.args.get("tables") or [action.this]:
                _drop(edited, action, each)
        case exp.RenameColumn():
            _rename(edited, action)
        case exp.AlterRename():
            table = edited.node.find(exp.Table)
            assert table is not None
            table.set("this", action.this.this.copy())
        case exp.AlterColumn() if not action.args.get("dtype"):
            _change(edited, action)
        case _:
            raise LanguageError(
                f"ALTER TABLE ... {action.sql('spark')} is not supported",
                code="unsupported",
                span=edited.statement.place(action),
                hint="ADD COLUMN, DROP COLUMN, RENAME, SET and DROP of NOT NULL and DEFAULT are",
            )


def _add(edited: Edited, column: exp.ColumnDef) -> None:
    name = column.name.lower()
    if name in edited.columns:
        if column.args.get("exists"):
            return
        raise NameFault(
            f"there is already a column {name}",
            code="exists",
            span=edited.statement.place(column),
        )
    made = column.copy()
    made.set("exists", None)
    last = max(i for i, e in enumerate(edited.schema.expressions) if isinstance(e, exp.ColumnDef))
    parts = list(edited.schema.expressions)
    edited.schema.set("expressions", [*parts[: last + 1], made, *parts[last + 1 :]])


def _drop(edited: Edited, action: exp.Expr, named: exp.Expr) -> None:
    if action.args.get("exists") and named.name.lower() not in edited.columns:
        return
    column = edited.column(named)
    if len(edited.columns) == 1:
        raise LanguageError("a table needs columns", code="unsupported", span=edited.statement.span)
    if any(isinstance(e.args["kind"], exp.PrimaryKeyColumnConstraint) for e in column.constraints):
        raise IntegrityError(
            f"{column.name} is the key of the table", code="in-use", span=edited.statement.span
        )
    edited.cascade |= bool(action.args.get("cascade"))
    edited.old_names.pop(column.name.lower(), None)
    column.pop()


def _rename(edited: Edited, action: exp.Expr) -> None:
    column, new = edited.column(action.this), action.args["to"].name.lower()
    old = column.name.lower()
    if new in edited.columns:
        raise NameFault(
            f"there is already a column {new}", code="exists", span=edited.statement.span
        )
    for each in list(edited.schema.find_all(exp.Identifier)):
        outside = each.find_ancestor(exp.Reference, exp.Table, exp.DataType)
        if each.name.lower() == old and outside is None:
            each.replace(exp.to_identifier(new, quoted=True))
    edited.old_names[new] = edited.old_names.pop(old, old)


def _change(edited: Edited, action: exp.Expr) -> None:
    """SET or DROP of NOT NULL or DEFAULT."""
    column = edited.column(action)
    of_default = action.args.get("allow_null") is None
    kind = exp.DefaultColumnConstraint if of_default else exp.NotNullColumnConstraint
    left = [each for each in column.constraints if not isinstance(each.args["kind"], kind)]
    if action.args.get("default") is not None:
        made: exp.Expr = exp.DefaultColumnConstraint(this=action.args["default"].copy())
        left.append(exp.ColumnConstraint(kind=made))
    elif not of_default and not action.args.get("allow_null"):
        left.append(exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
    column.set("constraints", left)


def _text(edited: Edited, created: Statement, statement: Statement) -> str:
    """The new CREATE TABLE; parsing it must give what was meant."""
    # for a whole CREATE, sqlglot leaves out UNIQUE
    text = f"CREATE TABLE {edited.schema.sql(DIALECT)}"
    if created.key:
        renamed = {old: new for new, old in edited.old_names.items()}
        gone = next((each for each in created.key if each not in renamed), None)
        if gone is not None:
            raise IntegrityError(
                f"{gone} is in the key of the table", code="in-use", span=statement.span
            )
        text += f" KEY ({', '.join(f'`{renamed[each]}`' for each in created.key)})"
    (again,) = statements(text)
    if again.node.this != edited.schema:
        raise LanguageError(
            (
                "this table cannot be altered, because its constraints cannot be written as "
                "text again"
            ),
            code="unsupported",
            span=statement.span,
            hint="create another table, and INSERT the rows of this one",
        )
    return text


# --- rows and views ------------------------------------------------------------------------


def _rows(
    runtime: Runtime, known: Function, function: Function, edited: Edited
) -> list[tuple[Any, ...]]:
    """The rows of the altered table, with defaults in new columns."""
    before, after = table_of(known), table_of(function)
    rows = runtime.engine.matching(before.relation, {})
    (created,) = statements(function.text)
    given = defaults(Reading(runtime), created, after.columns, len(rows))
    places = {c.name: p for c, p in zip(before.columns, before.positions, strict=True)}
    made: list[tuple[int, int | None, Any]] = []
    for column, position in zip(after.columns, after.positions, strict=True):
        old = edited.old_names.get(column.name)
        made.append(
            (position, None if old is None else places[old], given.get(column.name, repeat(None)))
        )
    found = []
    for row in rows:
        new: list[Any] = [None] * len(made)
        for position, place, otherwise in made:
            new[position] = next(otherwise) if place is None else row[place]
        found.append(tuple(new))
    for column, position in zip(after.columns, after.positions, strict=True):
        if not column.type.nullable and any(row[position] is None for row in found):
            raise IntegrityError(
                f"{after.name}.{column.name} cannot be NULL, but some rows have NULL there",
                code="null",
                hint="give it a DEFAULT, or UPDATE those rows first",
            )
    return found


def _recompile_dependents(runtime: Runtime, function: Function, edited: Edited) -> None:
    """Recompile what depends on the table. With CASCADE, views that no longer work are dropped;
    otherwise the error names everything that no longer works."""
    if runtime.redefined is not None:
        recheck(runtime, function.name, skip=function.id)
        return
    broken: dict[str, str] = {}

    def note(dependent: Function, error: HarkenError) -> None:
        broken[dependent.name] = error.message
        if edited.cascade and is_view(dependent):
            drop_with_readers(runtime, dependent, edited.statement)

    recheck_functions(runtime, function.name, function.id, when_broken=note)
    staying = [name for name in broken if runtime.catalog.overloads(name)]
    if staying:
        reasons = "; ".join(f"{name}: {broken[name]}" for name in staying)
        raise IntegrityError(
            f"{', '.join(staying)} would no longer work",
            code="in-use",
            span=edited.statement.span,
            hint=f"drop those first ({reasons})",
        )
    recheck_watchers(runtime, function.name)
