"""ALTER SOURCE ... ADD COLUMN, DROP COLUMN, RENEW COLUMNS, and SET (take ...): other columns of a
mirror.

The mirror is rebuilt with the rows that were read, like a table that is altered: what reads it is
compiled again, and if something would no longer work, nothing is altered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.errors import HarkenError, IntegrityError, LanguageError
from harken.intake.column_changes import ColumnChange
from harken.intake.source_records import SourceRecord
from harken.ir.schema import Function
from harken.lang.sql.source_statements import SourceWords, text_of
from harken.statements.dependents import recheck, recheck_functions, recheck_watchers
from harken.statements.sql.asked_needs import ask
from harken.statements.sql.definition_words import words_of
from harken.statements.sql.table_creation import make_way

if TYPE_CHECKING:  # it loads pyarrow
    from harken.intake.prepared_source import Prepared


def column_change(record: SourceRecord, words: SourceWords) -> ColumnChange | None:
    if words.change:
        return ColumnChange(words.change, words.columns)
    if "take" not in words.options:
        return None
    options = {**record.definition.options, **words.options}
    options = {name: value for name, value in options.items() if value is not None}
    names = tuple(each.strip().lower() for each in str(options.get("take", "")).split(","))
    return ColumnChange("take", tuple(filter(None, names)), options)


def with_text(prepared: Prepared) -> Prepared:
    """With the statement that makes the source as it is now."""
    text = text_of(words_of(prepared.definition))
    return replace(
        prepared,
        definition=replace(prepared.definition, text=text),
        function=replace(prepared.function, text=text),
    )


def remake_mirror(runtime: Runtime, prepared: Prepared, refill: Callable[[], None]) -> None:
    """In a transaction."""
    name = prepared.definition.name
    known = SqlTables(runtime.catalog).function(name)
    assert known is not None
    assert known.relation is not None
    if not prepared.definition.alone and runtime.engine.is_in_lake(known.relation):
        raise LanguageError(
            f"{name} cannot have other columns: its rows are in the lake, where each version keeps "
            "its own",
            code="unsupported",
            hint=f"DROP SOURCE {name} CASCADE and create it again",
        )
    runtime.reactions.before_schema_change({name})
    before = known.oid
    if known.relation == prepared.function.relation:
        made = runtime.catalog.add_function(prepared.function, Dependencies())
        assert made.relation is not None
        runtime.engine.remove_many(made.relation, runtime.engine.matching(made.relation, {}))
    else:
        make_way(runtime, known)
        if prepared.definition.alone:
            made = runtime.catalog.add_function(prepared.function, Dependencies())
        else:
            made = store(runtime, prepared.function, resident=True)
    if prepared.definition.alone:
        ask(runtime, made)
    after = SqlTables(runtime.catalog).function(name)
    if before is not None and after is not None and after.oid not in (None, before):
        runtime.permissions.move(before, after.oid)
    refill()
    _recompile_readers(runtime, made)
    runtime.reactions.synchronise()


def _recompile_readers(runtime: Runtime, function: Function) -> None:
    if runtime.redefined is not None:
        recheck(runtime, function.name, skip=function.id)
        return
    broken: dict[str, str] = {}

    def note(dependent: Function, error: HarkenError) -> None:
        broken[dependent.name] = error.message

    recheck_functions(runtime, function.name, function.id, when_broken=note)
    if broken:
        reasons = "; ".join(f"{name}: {why}" for name, why in broken.items())
        raise IntegrityError(
            f"{', '.join(broken)} would no longer work",
            code="in-use",
            hint=f"drop or change those first ({reasons})",
        )
    recheck_watchers(runtime, function.name)
