"""What ALTER SOURCE and CREATE OR ALTER SOURCE may change in the record of a source.

The columns of a mirror change with `mirror_alteration`; the server whose log is read never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harken.errors import SourceFault
from harken.intake.source_records import SourceDefinition, SourceRecord, State
from harken.lang.sql.source_statements import SourceWords, text_of
from harken.statements.sql.definition_words import words_of

OF_FOLLOWED = frozenset({"suspect_share", "retain", "take"})
"""The options of a followed source that may change."""


def refuse_fixed(record: SourceRecord, words: SourceWords) -> None:
    """The columns of a mirror stay, and so does the server whose log is read."""
    in_words = set(words.options)
    may_change = OF_FOLLOWED if record.layout.followed else in_words
    fixed = sorted(in_words - may_change)
    if fixed:
        raise SourceFault(
            f"the option {fixed[0]} of {record.name} cannot be changed",
            code="bad-option",
            hint=f"DROP SOURCE {record.name} CASCADE and create it again",
        )


def altered(record: SourceRecord, words: SourceWords) -> SourceRecord:
    """A source after ALTER SOURCE."""
    if words.paused is False and record.progress.state in (State.OK, State.UNCHANGED):
        return record
    if words.paused is not None:
        state = State.PAUSED if words.paused else State.NEW
        progress = replace(record.progress, state=state, why="", what_to_do="", attempts=0)
        return replace(record, progress=progress)
    definition = record.definition
    options = {**definition.options, **words.options}
    options = {name: value for name, value in options.items() if value is not None}
    poll = definition.poll if words.poll is None else words.poll
    definition = replace(definition, options=options, poll=poll)
    definition = replace(definition, text=text_of(words_of(definition)))
    position = record.position if not words.options else None
    return replace(record, definition=definition, position=position)


def without_take(definition: SourceDefinition) -> Mapping[str, Any]:
    return {name: value for name, value in definition.options.items() if name != "take"}


def may_become(record: SourceRecord, wanted: SourceDefinition) -> bool:
    """Do they differ in options that ALTER SOURCE can set, and in nothing else but the poll?"""
    known = record.definition
    if replace(known, options={}, poll=None, text="") != replace(
        wanted, options={}, poll=None, text=""
    ):
        return False
    names = known.options.keys() | wanted.options.keys()
    changed = {each for each in names if known.options.get(each) != wanted.options.get(each)}
    return not record.layout.followed or changed <= OF_FOLLOWED


def with_definition(record: SourceRecord, wanted: SourceDefinition) -> SourceRecord:
    is_read_anew = record.definition.options != wanted.options and not record.layout.followed
    position = None if is_read_anew else record.position
    return replace(record, definition=wanted, position=position)
