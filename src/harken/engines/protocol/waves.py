"""Compiled waves: all that one propagation does, as a program of the engine.

A wave that comes again and again does the same steps each time. They are a small closed set, and
say nothing about how an engine carries them out:

    Follow    kept totals follow their members, and their change goes into a Δ-set
    Fill      a Δ-set is filled by queries
    Apply     the change of its query goes into a materialised view, or into a Δ-set
    Read      the change of a view is handed out
    Clear     Δ-sets are emptied

Law: a compiled wave that ran did what its steps do one after another; one that did not run (None)
changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from harken.engines.protocol.capture import CapturedDelta, Delta
from harken.engines.protocol.keep import KeptSummary, MemberChanges
from harken.ir.relations import Relation
from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class Follow:
    kept: KeptSummary
    change: MemberChanges
    delta: Delta


@dataclass(frozen=True, slots=True)
class Fill:
    delta: Delta
    change: MemberChanges


@dataclass(frozen=True, slots=True)
class Apply:
    """`noted` is the Δ-set of the relation, if it is read and no trigger keeps it."""

    relation: Relation
    change: MemberChanges
    noted: CapturedDelta | None


@dataclass(frozen=True, slots=True)
class Read:
    name: str
    relation: Relation
    change: MemberChanges


@dataclass(frozen=True, slots=True)
class Clear:
    deltas: Sequence[Delta]


WaveStep: TypeAlias = Follow | Fill | Apply | Read | Clear

WaveChanges: TypeAlias = Mapping[str, tuple[list[Row], list[Row]]]
"""By the name of what was read, what it gained and lost."""


class CompiledWave(Protocol):
    @property
    def size(self) -> int:
        """How many statements of the engine it replaces."""

    def run(self) -> WaveChanges | None:
        """Do all steps, or none: None if too many rows have changed for it, if something kept is
        not valid any more, or if an expression failed."""

    def drop(self) -> None: ...


class Waves(Protocol):
    def compile(
        self, steps: Sequence[WaveStep], changed: Sequence[CapturedDelta], most: int
    ) -> CompiledWave | None:
        """A program for these steps, when no transaction is open; None if the engine cannot make
        one. It runs as long as `changed` have fewer than `most` rows together."""
