"""The statements about continual queries: CREATE, ALTER, DROP, PAUSE, SHOW and the others.

What changes a query may be said in two ways, `PAUSE CONTINUAL QUERY bayer` and `ALTER CONTINUAL
QUERY bayer PAUSE`; both mean the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from harken.continual import clause_texts, time_texts
from harken.continual.continual_queries import ContinualQueries
from harken.continual.couplings import Couplings, take_couplings, take_protocol
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_alterations import Alterations
from harken.continual.query_clauses import Clauses
from harken.continual.schedules import instant
from harken.continual.thesis_layout import parts_of_thesis
from harken.continual.trigger_kinds import THESIS
from harken.continual.words import Reader
from harken.database.runtime import Runtime
from harken.errors import EvaluationError, SyntaxFault
from harken.lang.sql.continual_statements import Continual
from harken.lang.sql.parser import Statement, statements
from harken.statements.sql.continual_listings import explain_query, show_queries, show_query

Changing = Callable[[Callable[[], None]], None]
ACTIONS = ("PAUSE", "RESUME", "MUTE", "UNMUTE", "SNOOZE", "OWNER", "RENAME", "ADD", "DROP", "SET")


class ContinualStatements:
    def __init__(self, runtime: Runtime, continual: ContinualQueries, changing: Changing) -> None:
        self._runtime, self._continual, self._changing = runtime, continual, changing
        self._alterations = Alterations(continual)

    def run(self, statement: Statement) -> None:
        node = statement.node
        assert isinstance(node, Continual)
        reader = Reader(statement.text, statement.offset)
        verb = node.verb
        match verb:
            case "CREATE":
                self._changing(lambda: self._create(reader))
            case "THESIS":
                self._changing(lambda: self._create_as_printed(reader))
            case "DROP":
                self._changing(lambda: self._drop(reader))
            case "EXECUTE":
                self._execute(reader)
            case "SHOW":
                self._show(reader)
            case "EXPLAIN":
                reader.need("CONTINUAL", "QUERY")
                explain_query(self._runtime, self._continual, self._only(reader))
            case "ACTIVATE":
                self._changing(lambda: self._activate(reader))
            case "DEACTIVATE":
                self._changing(lambda: self._deactivate(reader))
            case _:
                self._changing(lambda: self._alter(reader, verb))

    # --- installing ----------------------------------------------------------------------------

    def _create(self, reader: Reader) -> None:
        reader.need("CREATE")
        replaces = reader.takes("OR", "REPLACE")
        reader.need("CONTINUAL", "QUERY")
        skips = reader.takes("IF", "NOT", "EXISTS")
        name = None if reader.sees("AS") else reader.need_name("the name of the query")
        reader.need("AS")
        parts = clause_texts.parts_of(*reader.rest())
        clauses = clause_texts.clauses_of(parts, self._continual.kinds)
        _check_contingency(clauses)
        known = None if name is None else self._continual.queries.named(name)
        if known is not None and skips:
            return
        if known is not None and replaces:
            self._continual.drop(known)
        self._continual.install(name, clauses, parts[0].base)

    def _create_as_printed(self, reader: Reader) -> None:
        """Create CQ name as Query: ... Trigger: ... Stop: ..., or without a name from Query: on."""
        name = None
        if reader.takes_one(("CREATE", "CREAT")):
            if not reader.takes("CQ"):
                reader.need("CONTINUAL", "QUERY")
            if not (reader.sees("AS", "QUERY", ":") or reader.sees("QUERY", ":")):
                name = reader.need_name("the name of the query")
            reader.takes("AS")
        parts = parts_of_thesis(*reader.rest())
        clauses = clause_texts.clauses_of(parts, self._continual.kinds, THESIS)
        base = next((part.base for part in parts if part.name == "QUERY"), reader.base)
        self._continual.install(name, clauses, base)

    def _drop(self, reader: Reader) -> None:
        reader.need("DROP", "CONTINUAL", "QUERY")
        skips = reader.takes("IF", "EXISTS")
        if skips and self._continual.queries.named(_peeked(reader)) is None:
            return
        self._continual.drop(self._only(reader))

    def _only(self, reader: Reader) -> InstalledQuery:
        """The query whose name ends the statement."""
        found = self._named(reader)
        reader.need_end("the statement")
        return found

    def _named(self, reader: Reader) -> InstalledQuery:
        found = self._continual.queries.need(reader.need_name("the name of a continual query"))
        self._continual.permissions.check_own(found)
        return found

    # --- changing ------------------------------------------------------------------------------

    def _alter(self, reader: Reader, verb: str) -> None:
        reader.need(verb, "CONTINUAL", "QUERY")
        query = self._named(reader)
        if verb != "ALTER":
            self._act(query, verb, reader)
        else:
            action = reader.takes_one(ACTIONS)
            if action in (None, "SET", "OWNER") and not (action == "OWNER" and reader.sees("TO")):
                self._alter_clauses(query, reader, action)
            else:
                assert action is not None
                self._act(query, action, reader)
        reader.need_end("the statement")

    def _alter_clauses(self, query: InstalledQuery, reader: Reader, action: str | None) -> None:
        if action == "OWNER":
            reader.at -= 1
        is_query = reader.takes("AS")
        text, base = reader.rest()
        given = clause_texts.parts_of(text, base)
        parts = [part for part in given if part.text or part.name != "QUERY"]
        if not is_query and parts and parts[0].name == "QUERY":
            raise SyntaxFault(
                f"{parts[0].text.split()[0].upper()} is no clause of a continual query",
                code="syntax",
                span=parts[0].span,
                hint=f"one of {', '.join(clause_texts.NAMES)}; or AS SELECT ...; or "
                f"{', '.join(ACTIONS)}",
            )
        if not parts:
            raise reader.fault("nothing is altered", f"one of {', '.join(clause_texts.NAMES)}")
        made = self._alterations.set_clauses(query, parts)
        _check_contingency(made.clauses)

    def _act(self, query: InstalledQuery, action: str, reader: Reader) -> None:
        alterations = self._alterations
        match action:
            case "PAUSE":
                alterations.pause(query)
            case "RESUME":
                alterations.resume(query)
            case "MUTE" | "UNMUTE":
                alterations.mute(query, action == "MUTE")
            case "SNOOZE":
                alterations.snooze(query, self._until(query, reader))
            case "OWNER":
                reader.need("TO")
                alterations.give_to(query, _word(reader, "the owner"))
            case "RENAME":
                reader.need("TO")
                alterations.rename(query, reader.need_name("the new name"))
            case "ADD" | "DROP":
                reader.need("NOTIFY")
                parts = clause_texts.parts_of("NOTIFY " + reader.rest()[0])[1:]
                found = clause_texts.recipients_of(parts)
                if action == "ADD":
                    alterations.add_recipients(query, found)
                else:
                    for each in found:
                        query = alterations.drop_recipients(query, each)

    def _until(self, query: InstalledQuery, reader: Reader) -> datetime.datetime:
        if reader.takes("FOR"):
            length = time_texts.need_duration(reader)
            until = length.after(self._continual.now, query.zone)
            if until is None:
                raise reader.fault(f"{length} is too long")
            return until
        reader.need("UNTIL")
        moment = time_texts.take_moment(reader)
        if moment is None:
            raise reader.fault("a moment is missing", "SNOOZE UNTIL '2027-01-31 08:00'")
        return instant(moment, query.zone)

    # --- coupling ------------------------------------------------------------------------------

    def _activate(self, reader: Reader) -> None:
        """ACTIVATE CONTINUAL QUERY name COUPLING AFTER COMMIT, or `Activate <cqid> define
        communication protocol between ...` as the thesis prints it. What was paused goes on."""
        reader.need("ACTIVATE")
        reader.takes("CONTINUAL", "QUERY")
        query = self._bracketed(reader)
        before = query.clauses.coupling
        couplings: Couplings | None = None
        if reader.takes("COUPLING"):
            couplings = take_couplings(reader, before)
        elif not reader.is_done:
            couplings = take_protocol(reader, before)
        reader.need_end("ACTIVATE")
        if couplings is not None:
            query = self._alterations.couple(query, couplings)
        if str(query.state) == "paused":
            self._alterations.resume(query)

    def _deactivate(self, reader: Reader) -> None:
        """The query ends, and its owner is told that it has."""
        reader.need("DEACTIVATE")
        reader.takes("CONTINUAL", "QUERY")
        query = self._bracketed(reader)
        reader.need_end("DEACTIVATE")
        self._continual.end(query, "it was deactivated")

    def _bracketed(self, reader: Reader) -> InstalledQuery:
        """The thesis prints <cqid>."""
        brackets = reader.takes("<")
        found = self._named(reader)
        if brackets:
            reader.need(">")
        return found

    # --- asking --------------------------------------------------------------------------------

    def _execute(self, reader: Reader) -> None:
        if not reader.takes("EXECUTE"):
            reader.need("RUN")
        reader.need("CONTINUAL", "QUERY")
        query = self._only(reader)
        done = self._continual.execute(query)
        if done is not None and done.error:
            raise EvaluationError(
                f"{query.title} fails: {done.error}",
                code="bad-value",
                hint="it is tried again by itself; continual_execution has all errors",
            )

    def _show(self, reader: Reader) -> None:
        reader.at = 2
        if reader.takes("QUERIES"):
            reader.need_end("SHOW CONTINUAL QUERIES")
            show_queries(self._runtime, self._continual)
            return
        reader.need("QUERY")
        show_query(self._runtime, self._continual, self._only(reader))


def _word(reader: Reader, what: str) -> str:
    found = reader.takes_kind("name", "text", "quoted")
    if found is None:
        raise reader.fault(f"{what} is missing")
    return found.value


def _peeked(reader: Reader) -> str:
    return "" if reader.word is None else reader.word.value


def _check_contingency(clauses: Clauses) -> None:
    """The statement that is run when an execution is too late must be one."""
    said = None if clauses.deadline is None else clauses.deadline.contingency
    if said is not None and len(statements(said)) != 1:
        raise SyntaxFault(
            "a contingency is one statement", code="syntax", hint="DEADLINE 5 MINUTES ELSE ..."
        )
