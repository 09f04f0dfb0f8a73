"""What a statement would have done over the last day, as the form of a continual query shows it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harken.api.database import Database
from harken.api.replays import MOST_ROWS, KeptPast, WouldHaveFired
from harken.console.bar_charts import bars
from harken.console.rendering import plural
from harken.errors import HarkenError
from harken.lang.sql.table_texts import count_text

HOURS = 24


@dataclass(frozen=True, slots=True)
class DryRun:
    sentence: str
    firings: Sequence[WouldHaveFired] = ()
    """Newest first."""
    past: Sequence[KeptPast] = ()
    unknown: Sequence[str] = ()
    """Relations of whose past nothing is kept."""
    picture: Markup | str = ""


def dry_run(db: Database, statement: str) -> DryRun:
    try:
        return _replayed(db, statement)
    except HarkenError as error:
        return DryRun(f"It cannot be said how often it would have fired: {error.message}.")


def _replayed(db: Database, statement: str) -> DryRun:
    queries = db.continual_queries
    names = queries.named_in(statement, [each.name for each in db.views()])
    large = [each for each in names if _rows(db, each) > MOST_ROWS]
    if large:
        return DryRun(f"{large[0]} has more than {MOST_ROWS:,} rows, too many for a dry run.")
    until = datetime.datetime.now(datetime.UTC)
    since = until - datetime.timedelta(hours=HOURS)
    found = queries.replay(statement, [db.history(each) for each in names], since)
    unknown = [each.relation for each in found.past if not each.is_kept]
    often = len(found.firings)
    more = "more than " if found.is_cut else ""
    sentence = f"It would have fired {more}{plural(often, 'time')} in the last day"
    if unknown:
        sentence += f"; what happened to {', '.join(unknown)} before now is not known"
    counts, labels = [0] * HOURS, []
    for each in found.firings:
        counts[min(int((each.at - since).total_seconds() // 3600), HOURS - 1)] += 1
    for hour in range(HOURS):
        labels.append(f"{since + datetime.timedelta(hours=hour):%H:%M}")
    picture = bars("how often it would have fired, by the hour", counts, labels) if often else ""
    newest = list(found.firings)[::-1]
    return DryRun(f"{sentence}.", newest[:10], found.past, unknown, picture)


def _rows(db: Database, name: str) -> int:
    return int(db.sql(count_text(name)).scalar())
