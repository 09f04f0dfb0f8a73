"""A source that was read with columns that its mirror does not have yet."""

from __future__ import annotations

from dataclasses import dataclass

from harken.intake.open_sources import OpenSource, Reading
from harken.intake.source_records import Layout, SourceDefinition
from harken.ir.schema import Function


@dataclass(frozen=True, slots=True)
class Prepared:
    definition: SourceDefinition
    layout: Layout
    function: Function
    reading: Reading
    source: OpenSource
