"""What can be done to an installed continual query: change a clause, pause, resume, mute, snooze.

A paused query is not executed, and what its trigger does meanwhile is not made up for: the
difference of its next execution tells all that has changed. A snoozed one waits until a moment, and
is then executed once for all that has fired. A muted one is executed and sends nothing.

Law: whatever is altered, the difference of the next execution starts from the last one, unless the
query itself is another: then the whole answer is delivered, as of a new query.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from harken.continual.clause_texts import Part, altered
from harken.continual.continual_queries import ContinualQueries
from harken.continual.couplings import Couplings
from harken.continual.installed_queries import InstalledQuery, State
from harken.continual.query_clauses import Clauses
from harken.continual.trigger_kinds import ALTERED, Cause
from harken.database.messages import Recipient
from harken.errors import IntegrityError, NameFault, ValueFault


class Alterations:
    """Every method is called in a transaction, and returns the query as it is then."""

    def __init__(self, continual: ContinualQueries) -> None:
        self._continual = continual

    # --- clauses -------------------------------------------------------------------------------

    def set_clauses(self, query: InstalledQuery, parts: Sequence[Part]) -> InstalledQuery:
        """Put these clauses in place of those that the query has."""
        clauses = altered(query.clauses, parts, self._continual.kinds)
        base = next((part.base for part in parts if part.name == "QUERY"), 0)
        return self.apply(query, clauses, base)

    def add_recipients(self, query: InstalledQuery, more: Sequence[Recipient]) -> InstalledQuery:
        notify = (*query.clauses.notify, *(e for e in more if e not in query.clauses.notify))
        return self.apply(query, replace(query.clauses, notify=notify))

    def drop_recipients(self, query: InstalledQuery, gone: Recipient) -> InstalledQuery:
        """Without an address all of the channel."""
        left = tuple(
            each
            for each in query.clauses.notify
            if each.channel != gone.channel or (gone.address and each.address != gone.address)
        )
        if len(left) == len(query.clauses.notify):
            raise NameFault(
                f"{query.title} does not notify {gone.channel.upper()} {gone.address}".rstrip(),
                code="unknown-table",
                hint=f"SHOW CONTINUAL QUERY {query.name}",
            )
        return self.apply(query, replace(query.clauses, notify=left))

    def couple(self, query: InstalledQuery, couplings: Couplings) -> InstalledQuery:
        return self.apply(query, replace(query.clauses, coupling=couplings))

    def apply(self, query: InstalledQuery, clauses: Clauses, base: int = 0) -> InstalledQuery:
        continual, old = self._continual, query.clauses
        _refuse_stopped(query)
        zone = clauses.zone or query.zone_name
        made = replace(query, clauses=clauses, zone_name=zone, owner=clauses.owner or query.owner)
        if clauses == old:
            return query
        made = continual.checked(made, base)
        kind = continual.kinds.of(old.trigger)
        has_new_trigger = clauses.trigger != old.trigger or clauses.query != old.query
        if has_new_trigger:
            kind.dropped(query)
            made = replace(made, resumed=continual.now)
        if clauses.query != old.query:
            continual.answers.forget_query(query.number)
            continual.queries.write(made)
            return continual.begin(made, Cause(ALTERED, "altered", continual.now))
        has_other_way = made.follows != query.follows
        if has_other_way:
            continual.answers.switch(query)
        if has_new_trigger:
            continual.kinds.of(clauses.trigger).installed(made)
        continual.changed(made)
        if has_other_way:
            continual.answers.start(made.number)
        return made

    # --- how it runs ---------------------------------------------------------------------------

    def pause(self, query: InstalledQuery) -> InstalledQuery:
        _refuse_stopped(query)
        if query.state is State.PAUSED:
            return query
        self._continual.kinds.of(query.clauses.trigger).dropped(query)
        self._continual.firings.clear(query.number)
        return self._continual.changed(replace(query, state=State.PAUSED, snoozed=None))

    def resume(self, query: InstalledQuery) -> InstalledQuery:
        """End a pause or a snooze; a query that fails is tried again at once."""
        _refuse_stopped(query)
        now = self._continual.now
        was_paused = query.state is State.PAUSED
        made = replace(query, state=State.ACTIVE, snoozed=None)
        if was_paused:
            made = replace(made, resumed=now)
            self._continual.kinds.of(query.clauses.trigger).installed(made)
        if made.retry is not None:
            made = replace(made, retry=now)
        return self._continual.changed(made)

    def mute(self, query: InstalledQuery, muted: bool = True) -> InstalledQuery:
        return self._continual.changed(replace(query, muted=muted))

    def snooze(self, query: InstalledQuery, until: datetime.datetime) -> InstalledQuery:
        _refuse_stopped(query)
        if until <= self._continual.now:
            raise ValueFault(
                f"{until.isoformat(sep=' ')} has passed",
                code="bad-value",
                hint="give a moment in the future: SNOOZE UNTIL '2027-01-31 08:00'",
            )
        if query.state is State.PAUSED:
            query = self.resume(query)
        return self._continual.changed(replace(query, snoozed=until))

    # --- whose it is ---------------------------------------------------------------------------

    def give_to(self, query: InstalledQuery, owner: str) -> InstalledQuery:
        clauses = replace(query.clauses, owner=owner)
        return self._continual.changed(replace(query, owner=owner, clauses=clauses))

    def rename(self, query: InstalledQuery, name: str) -> InstalledQuery:
        known = self._continual.queries.named(name)
        if known is not None and known.number != query.number:
            raise NameFault(
                f"there is already a continual query {name}",
                code="exists",
                hint="choose another name",
            )
        return self._continual.changed(replace(query, name=name))


def _refuse_stopped(query: InstalledQuery) -> None:
    if not query.is_live:
        raise IntegrityError(
            f"{query.title} has stopped",
            code="in-use",
            hint=f"DROP CONTINUAL QUERY {query.name}, and install it again",
        )
