"""A session of Datalog: runs texts.

The declarations, rules and facts of a text take effect before its first step, wherever they are in
it. The steps, `+fact.`, `-fact.`, `?- query.`, `.monitor` and `.commit`, run in order; `.output`
and `.printsize` come last. A transaction that a text begins is committed at its end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harken.calculus.rule_annotations import AnnotatedProgram
from harken.calculus.rule_findings import Finding
from harken.calculus.rule_formulas import Bases
from harken.consumers.programs.compiled_programs import CompiledProgram
from harken.consumers.programs.cycle import Choose, Firings
from harken.consumers.programs.program_runs import Programs
from harken.database.changes import Change
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, NameFault, Span, SyntaxFault
from harken.ir.relations import Relation
from harken.lang.datalog import syntax
from harken.lang.datalog.components import components_of, expand
from harken.lang.datalog.inlining import write_out, written_out
from harken.lang.datalog.known_relations import KnownRelation, relation_named
from harken.lang.datalog.parser import Program, parse
from harken.maintenance.materialisation import Estimates
from harken.statements.datalog import files
from harken.statements.datalog.declarations import Schema, ignored
from harken.statements.datalog.facts import Facts, located
from harken.statements.datalog.materialised_programs import (
    annotation_of,
    estimates_of,
    materialised,
)
from harken.statements.datalog.production_checks import findings_of, formulas_and_bases
from harken.statements.datalog.production_programs import (
    WrittenProgram,
    compile_program,
    compile_text,
)
from harken.statements.datalog.reading import Reading, column_types
from harken.statements.datalog.script_output import Changed, Output, Size
from harken.statements.language_registry import NO_OPTIONS, Monitor, RunOptions
from harken.values.rows import Row

ACTING = (syntax.Run, syntax.Activation, syntax.Query, syntax.Monitor, syntax.Commit)
"""Steps that say nothing about the rules of a text."""


class DatalogWarning(UserWarning):
    """A part of a program that has no effect."""


@dataclass(frozen=True, slots=True)
class SourceProgram:
    """Production rules that a text has defined, with the facts that it stated."""

    written: WrittenProgram
    limit: int | None
    stated: tuple[tuple[Relation, Row], ...]
    text: str


@dataclass(frozen=True, slots=True)
class ProgramWishes:
    """How one run of a program differs from another: its limit, a function that chooses among
    candidates, and one that is called with the lines of the trace."""

    limit: int | None = None
    choose: Choose | None = None
    say: Callable[[str], None] | None = None
    materialise: str = "auto"


NO_WISHES = ProgramWishes()


class DatalogSession:
    """`watch` starts reporting the changes of a relation."""

    def __init__(
        self,
        runtime: Runtime,
        transactions: Transactions,
        watch: Monitor,
        programs: Programs,
    ) -> None:
        self.runtime = runtime
        self.transactions = transactions
        self.watch = watch
        self.programs = programs
        self.written = WrittenProgram()
        """The production rules of earlier texts."""
        self.watched: set[str] = set()
        """The ids of the functions whose changes are reported; each once, however often that is
        requested."""
        self.components: dict[str, syntax.Component] = {}
        """The components of earlier texts: in a shell, each statement is a text."""

    def run(self, text: str, options: RunOptions = NO_OPTIONS) -> None:
        """Run a whole text. If it fails, everything since its last commit is rolled back."""
        source, warn = options.source, options.warn
        try:
            written = parse(text)
            expanded = expand(written, self.components)
            _warn(written, written_out(expanded.statements), source, warn)
            program = write_out(expanded)

            def told(message: str, span: Span) -> None:
                _tell(message, span, text, source, warn)

            with self.runtime.engine.connection.watch.statement(), self.transactions.text():
                run = _Run(self, program, options, told)
                run.run()
            self.components.update(components_of(written.statements))
            self.written = run.productions
        except HarkenError as error:
            error.locate(text, source)
            raise
        except RecursionError:
            deep = SyntaxFault("this text is nested too deeply", hint="write it as several rules")
            deep.locate(text, source)
            raise deep from None

    def define(self, text: str, options: RunOptions = NO_OPTIONS) -> SourceProgram:
        """Carry out what a text declares and states, and return its production rules. `.run` in it
        only sets the limit."""
        try:
            written = parse(text)
            expanded = write_out(expand(written, self.components))
            runs = [each for each in expanded.statements if isinstance(each, syntax.Run)]
            rest = [each for each in expanded.statements if not isinstance(each, syntax.Run)]
            program = replace(expanded, statements=tuple(rest))

            def told(message: str, span: Span) -> None:
                _tell(message, span, text, options.source, options.warn)

            with self.runtime.engine.connection.watch.statement(), self.transactions.text():
                run = _Run(self, program, options, told, WrittenProgram())
                run.run()
                limit = runs[-1].limit if runs else None
                source = SourceProgram(run.productions, limit, tuple(run.stated), text)
                compile_program(source.written, self.runtime, limit, source.stated)
            return source
        except HarkenError as error:
            error.locate(text, options.source)
            raise

    def fire(self, source: SourceProgram, wishes: ProgramWishes = NO_WISHES) -> Firings:
        """Run a program to its fixpoint, all or nothing, in the open transaction or in one of its
        own."""
        owns = not (self.transactions.active or self.transactions.in_block)
        limit = wishes.limit or source.limit
        try:
            with self.runtime.engine.connection.watch.statement(), self.transactions.text():
                with self.transactions.statement():
                    compiled = compile_program(source.written, self.runtime, limit, source.stated)
                    chosen = self.materialised(compiled, wishes.materialise)
                    found = self.programs.run(chosen, None, wishes.choose, wishes.say)
                if owns:
                    self.transactions.commit()
            return found
        except HarkenError as error:
            error.locate(source.text, None)
            raise

    def annotated(self, source: SourceProgram) -> tuple[AnnotatedProgram, Bases]:
        """What the analysis says of a program."""
        compiled = compile_program(source.written, self.runtime)
        return annotation_of(compiled, self.estimates()), formulas_and_bases(compiled)[1]

    def estimates(self) -> Estimates:
        """How many rows literals have, for what is worth storing."""
        return estimates_of(self.runtime.engine.statistics)

    def materialised(self, program: CompiledProgram, policy: str) -> CompiledProgram:
        """The program with what a policy stores for it."""
        return materialised(program, policy, self.runtime, self.programs.materialisation)

    def findings(self, text: str, source: str | None = None) -> list[Finding]:
        """What the production rules of a text may do to each other. The caller rolls back what it
        declares and states."""
        try:
            written = write_out(expand(parse(text), self.components))
            kept = tuple(each for each in written.statements if not isinstance(each, ACTING))
            run = _Run(
                self, replace(written, statements=kept), NO_OPTIONS, _ignore, WrittenProgram()
            )
            run.run()
            given = {
                each.relation
                for each in kept
                if isinstance(each, syntax.Directive) and each.kind == "input"
            }
            return findings_of(run.productions, self.runtime, given)
        except HarkenError as error:
            error.locate(text, source)
            raise

    def close(self) -> None:
        """Nothing here is temporary."""


class _Run:
    """The run of one text."""

    def __init__(
        self,
        session: DatalogSession,
        program: Program,
        options: RunOptions,
        warn: Callable[[str, Span], None],
        rules: WrittenProgram | None = None,
    ) -> None:
        """`rules` are those that the text adds its own to; by default those of the session."""
        self._strategy = options.strategy
        self._options = options
        self._warn = warn
        self._session = session
        self._runtime = session.runtime
        self._transactions = session.transactions
        self._program = program
        self._directory = options.facts
        self._output = options.output
        self._owns = not (self._transactions.active or self._transactions.in_block)
        self._transactions.look()
        self._schema = Schema(self._runtime, program)
        self._relations = self._schema.relations
        self._reading = Reading(self._runtime, self._relations, self._schema.types)
        self._facts = Facts(self._runtime, self._schema, self._reading)
        known = session.written if rules is None else rules
        self.productions = known.extended(program.statements, program.text)

    def run(self) -> None:
        statements = self._program.statements
        if any(map(_defines, statements)):
            with self._transactions.statement():
                self._schema.define()
                self._state()
                self._session.runtime.reactions.synchronise()
        for statement in statements:
            with located(statement.span):
                self._step(statement)
        self._finish([each for each in statements if isinstance(each, syntax.Directive)])
        if self._owns:
            self._transactions.commit()

    def _state(self) -> None:
        """Add the facts of the program; those in files come first."""
        for statement in self._program.statements:
            if isinstance(statement, syntax.Directive) and statement.kind == "input":
                self._load(statement)
        stated = [
            head
            for statement in self._program.statements
            if isinstance(statement, syntax.Rule) and statement.is_fact
            for head in statement.heads
        ]
        self._facts.state(stated)

    def _load(self, node: syntax.Directive) -> None:
        known = relation_named(self._relations, node.relation, node.span)
        form = files.form_of("input", node.relation, node.parameters, self._directory, node.span)
        rows = files.read_rows(form, known, node.span, lambda told: self._warn(told, node.span))
        self._facts.add(node.relation, rows, node.span)

    # --- steps -----------------------------------------------------------------------------

    def _step(self, statement: syntax.Statement) -> None:
        match statement:
            case syntax.Change():
                with self._transactions.statement():
                    self._facts.change(statement)
                    self._session.runtime.reactions.synchronise()
            case syntax.Commit():
                self._transactions.commit()
            case syntax.Query():
                self._runtime.emit("rows", *self._reading.query(statement))
            case syntax.Monitor():
                self._monitor(statement)
            case syntax.Run():
                self._run_program(statement)
            case syntax.Activation():
                with self._transactions.statement():
                    self._activate(statement)

    def _activate(self, node: syntax.Activation) -> None:
        """Run the program, and keep it at its fixpoint from then on."""
        active, rules = self._session.programs.active, self.productions.rules
        if not node.on:
            if not active.deactivate(rules or None):
                raise NameFault("none of these rules is active", code="unknown-rule")
            return
        self.productions.check_activation()
        taken = sorted(rules.keys() & active.rules().keys())
        if taken:
            raise NameFault(
                f"the rule {taken[0]} is active already",
                code="exists",
                hint="end its program with .deactivate, or give the rule another name",
            )
        text = self.productions.text(node.limit)
        self._session.programs.run(compile_text(text, self._runtime))
        active.activate(text)

    @property
    def stated(self) -> list[tuple[Relation, Row]]:
        """The facts of the text, in its order."""
        return self._facts.stated

    def _run_program(self, node: syntax.Run) -> None:
        """All or nothing: a program that does not settle leaves no trace."""
        with self._transactions.statement():
            compiled = compile_program(
                self.productions, self._runtime, node.limit, self._facts.stated
            )
            self._session.programs.run(
                self._session.materialised(compiled, self._options.materialise)
            )

    def _monitor(self, node: syntax.Monitor) -> None:
        """A monitor starts from committed data, so the changes of this text are committed first."""
        known = relation_named(self._relations, node.relation, node.span)
        if self._owns:
            self._transactions.commit()
        if known.relation.id in self._session.watched:
            return
        runtime = self._runtime

        def tell(change: Change) -> None:
            plus = [_declared(known, row) for row in change.plus]
            minus = tuple(_declared(known, row) for row in change.minus)
            runtime.listener(
                Changed("change", known.attributes, plus, runtime.name_object, known.name, minus)
            )

        self._session.watch(known.relation.name, tell, strategy=self._strategy)
        self._session.watched.add(known.relation.id)

    # --- at the end ------------------------------------------------------------------------

    def _finish(self, directives: Sequence[syntax.Directive]) -> None:
        wanted = [
            (node, relation_named(self._relations, node.relation, node.span))
            for node in directives
            if node.kind in ("output", "printsize")
        ]
        if not wanted:
            return
        with located(wanted[0][0].span), self._reading.together(k for _, k in wanted) as rows_of:
            for node, known in wanted:
                with located(node.span):
                    rows = rows_of(known)
                    if node.kind == "output":
                        self._put_out(node, known, self._reading.values(known, rows))
                    else:
                        size = [(node.relation, len(rows))]
                        self._runtime.listener(Size("print", (), size, self._runtime.name_object))

    def _put_out(self, node: syntax.Directive, known: KnownRelation, rows: list[Row]) -> None:
        directory = self._output or Path()
        form = files.form_of("output", node.relation, node.parameters, directory, node.span)
        if self._output is not None and not form.standard:
            files.write_rows(form, known, rows, node.span)
            return
        heading = files.heading(form, known) if form.headers or self._output is None else None
        self._runtime.listener(
            Output(
                "rows",
                known.attributes,
                rows,
                self._runtime.name_object,
                node.relation,
                heading,
                tuple(files.lines_of(form, rows)),
                types=column_types(known),
            )
        )


def _ignore(message: str, span: Span) -> None:
    """A warning that nobody asked for."""


def _defines(statement: syntax.Statement) -> bool:
    """Whether the statement defines something. Texts that only query need no write transaction."""
    if isinstance(statement, syntax.Directive):
        return statement.kind in ("input", "limitsize")
    return isinstance(statement, syntax.Declaration | syntax.Rule)


def _declared(known: KnownRelation, row: tuple[object, ...]) -> tuple[object, ...]:
    """A row of the relation with its attributes in the order of declaration."""
    return tuple(row[i] for i in known.positions)


def _warn(
    program: Program,
    inlined: Collection[Span],
    source: str | None,
    warn: Callable[[str], None] | None,
) -> None:
    for message, span in ignored(program, inlined):
        _tell(message, span, program.text, source, warn)


def _tell(
    message: str, span: Span, text: str, source: str | None, warn: Callable[[str], None] | None
) -> None:
    line, column = span.position(text)
    place = ":".join(str(part) for part in (source, line, column) if part)
    if warn is not None:
        warn(f"{place}: {message}")
    else:
        warnings.warn(f"{place}: {message}", DatalogWarning, stacklevel=5)
