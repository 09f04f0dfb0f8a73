"""The definition of a source, from the words of CREATE SOURCE and back."""

from __future__ import annotations

from harken.intake.source_records import SourceDefinition
from harken.lang.sql.source_statements import SourceWords, text_of


def definition_of(words: SourceWords) -> SourceDefinition:
    return SourceDefinition(
        name=words.name,
        kind=words.kind,
        options=dict(words.options),
        key=words.key,
        capture=words.capture,
        poll=words.poll,
        alone=words.alone,
        in_lake=words.in_lake,
        text=text_of(words),
    )


def words_of(definition: SourceDefinition) -> SourceWords:
    return SourceWords(
        verb="create",
        name=definition.name,
        kind=definition.kind,
        options=definition.options,
        key=definition.key,
        capture=definition.capture,
        poll=definition.poll,
        alone=definition.alone,
        in_lake=definition.in_lake,
    )
