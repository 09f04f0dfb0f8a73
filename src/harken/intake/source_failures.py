"""What becomes of a source that fails: its rows stay, its state says why, and it is tried again.

Each try waits twice as long as the one before, up to an hour or its own poll, with some jitter. A
source whose columns changed stops, if its readings are whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.intake.open_sources import OpenSources
from harken.intake.source_records import FOLLOWED, SourceRecord, State, stored_moment
from harken.intake.taking_in import Intake, Taken, in_state

FIRST_RETRY = 15.0
"""Seconds after the first failure, if the source is not polled sooner."""
LAST_RETRY = 3_600.0
"""Seconds between two tries, unless it is polled less often."""
JITTER = 0.2
"""The share by which the time of a retry varies, so that sources do not come back together."""
LONGEST_ASKED = 86_400.0
"""Seconds that a source may ask us to wait."""
LONGEST_WHY = 1_000
STATES = {"source-suspect": State.SUSPECT, "source-changed": State.CHANGED}


@dataclass(frozen=True, slots=True)
class SourceFailures:
    runtime: Runtime
    intake: Intake
    sources: OpenSources

    def note(self, name: str, error: HarkenError) -> Taken | None:
        """In a transaction."""
        record = self.intake.records.find(name)
        if record is None:
            return None
        now = stored_moment(self.intake.now)
        attempts = record.progress.attempts + 1
        state = STATES.get(error.code, State.FAILING)
        if record.is_paused:
            state = State.PAUSED
        redacted = self.runtime.secrets.redacted
        why = redacted(error.message)[:LONGEST_WHY]
        progress = replace(
            in_state(record.progress, state, now),
            why=why,
            what_to_do=redacted(error.hint or "")[:LONGEST_WHY],
            attempts=attempts,
        )
        if error.code == "source-lost":
            record = replace(record, position=None)
        due = self._due(record, state, attempts, error, now)
        self.intake.keep(record, progress, due)
        return Taken(name, state, why=why, rows=progress.rows, due=due)

    def _due(
        self, record: SourceRecord, state: State, attempts: int, error: HarkenError, now: int
    ) -> int | None:
        stops = state is State.CHANGED and (record.layout.followed or self._is_whole(record))
        if record.is_paused or record.definition.alone or stops:
            return None
        if record.layout.followed:
            return FOLLOWED
        return now + int(self.wait(record, attempts, error) * 1_000_000)

    def _is_whole(self, record: SourceRecord) -> bool:
        try:
            return self.sources.of(record).is_whole
        except HarkenError:
            return False

    def wait(self, record: SourceRecord, attempts: int, error: HarkenError | None = None) -> float:
        """Seconds until the next try."""
        every = record.definition.every
        doubled = min(every, FIRST_RETRY) * 2 ** min(attempts - 1, 30)
        seconds = min(doubled, max(every, LAST_RETRY))
        asked = getattr(error, "retry_after", None) or 0.0
        varied = random.Random(f"{record.name} {attempts}").uniform(1 - JITTER, 1 + JITTER)
        return float(max(seconds * varied, min(asked, LONGEST_ASKED)))

    def failing(self, names: Iterable[str]) -> list[str]:
        found = (self.intake.records.find(name) for name in names)
        return [e.name for e in found if e is not None and e.progress.state == State.FAILING]
