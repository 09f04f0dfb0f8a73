"""Declarations and rules: Datalog relations as functions of the catalog.

A relation without rules is stored; one with rules is derived, and its facts, if any, are in a
stored relation of their own. A text may declare and define in any order, and relations may be
mutually recursive, so all of them are known before any is checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from harken.database.function_tables import SqlTables
from harken.database.language_names import DATALOG, SQL
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.database.system import relation_of
from harken.errors import NameFault, Span, SyntaxFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Definition, Program
from harken.ir.schema import Function, FunctionKind
from harken.lang.datalog import syntax
from harken.lang.datalog.known_relations import KnownRelation, unknown_relation
from harken.lang.datalog.negation_cycles import refuse_negative_cycles
from harken.lang.datalog.parser import Program as Text
from harken.planner.prepare import check
from harken.statements.datalog.function_relations import CatalogRelations, columns_of, types_of
from harken.statements.datalog.reading import mentioning
from harken.statements.datalog.relation_clauses import facts_relation, translate_rules
from harken.statements.datalog.text import facts_name, kept, relation_text
from harken.statements.dependents import recheck

LONGEST_NAME = 200


@dataclass(slots=True)
class Wanted:
    """What a text says about a relation."""

    declaration: syntax.Declaration
    rules: list[syntax.Rule] = field(default_factory=list)
    """Rules stored earlier come first."""
    texts: list[str] = field(default_factory=list)
    limit: int | None = None
    known: Function | None = None
    has_facts: bool = False
    changed: bool = False

    @property
    def is_derived(self) -> bool:
        return bool(self.rules)


class Schema:
    """Makes the catalog agree with what a program says."""

    def __init__(self, runtime: Runtime, program: Text) -> None:
        self._runtime = runtime
        self._catalog = runtime.catalog
        self._program = program
        self.types = types_of(runtime.catalog)
        self.types.declare(
            (each, program.text_of(each))
            for each in program.statements
            if isinstance(each, syntax.TypeDeclaration)
        )
        self.relations = CatalogRelations(runtime.catalog, self.types)
        self._wanted: dict[str, Wanted] = {}
        self._declared: set[str] = set()
        """The declarations of this text; another text may repeat them."""

    def define(self) -> None:
        for statement in self._program.statements:
            if isinstance(statement, syntax.Declaration):
                self._declare(statement)
        for statement in self._program.statements:
            match statement:
                case syntax.Rule():
                    self._note_rule(statement)
                case syntax.Directive(kind="input"):
                    self._note_facts(statement.relation, statement)
                case syntax.Directive(kind="limitsize"):
                    self._note_limit(statement)
        changed = {name: each for name, each in self._wanted.items() if each.changed}
        if not changed:
            return
        self._runtime.reactions.before_schema_change(set(changed))
        made = [self._provide(name, each) for name, each in changed.items()]
        self._check([each for each in made if each is not None])
        for name, each in changed.items():
            if each.known is not None:
                recheck(self._runtime, name)

    # --- what the text says ----------------------------------------------------------------

    def _declare(self, node: syntax.Declaration) -> None:
        if len(node.name) > LONGEST_NAME:
            raise NameFault(
                f"a name has at most {LONGEST_NAME} characters", code="bad-name", span=node.span
            )
        columns_of(node, self.types)
        known = self.relations.find(node.name)
        if node.name in self._declared or (known is not None and not self._is_same(node, known)):
            raise NameFault(
                f"there is already a relation {node.name}",
                code="exists",
                span=node.span,
                hint=f"it is {node.name}({_shown(known)})" if known is not None else None,
            )
        self._declared.add(node.name)
        if known is None:
            self._refuse_same_letters(node)
            self._wanted[node.name] = Wanted(node, changed=True)

    def _refuse_same_letters(self, node: syntax.Declaration) -> None:
        """Names in Datalog are case-sensitive, but those in SQL only where they must be. No view
        may come to mean another relation than before."""
        for known in SqlTables(self._catalog).folded(node.name):
            views = [
                each.name for each in self._catalog.dependents(known.name) if each.language == SQL
            ]
            if views:
                raise NameFault(
                    f"there is a relation {known.name}, and the SQL view {views[0]} could not "
                    f"distinguish {node.name} from it",
                    code="exists",
                    span=node.span,
                    hint="choose a name that differs in more than case, or drop the view first",
                )

    def _is_same(self, node: syntax.Declaration, known: KnownRelation) -> bool:
        function = self.relations.function(node.name)
        assert function is not None
        if function.language == DATALOG:
            return kept(function.text).declaration.attributes == node.attributes
        kinds = tuple(self.types.kind(each.type, each.span) for each in node.attributes)
        return kinds == known.kinds

    def _note_rule(self, rule: syntax.Rule) -> None:
        text = self._program.text_of(rule)
        for name in dict.fromkeys(head.name for head in rule.heads):
            head = next(each for each in rule.heads if each.name == name)
            if rule.is_fact:
                self._note_facts(name, head)
                continue
            wanted = self._about(name, head)
            if " ".join(text.split()) not in (" ".join(each.split()) for each in wanted.texts):
                wanted.texts.append(text)
                wanted.rules.append(rule)
                wanted.changed = True

    def _note_facts(self, name: str, node: syntax.Atom | syntax.Directive) -> None:
        if name in self._wanted:
            self._wanted[name].has_facts = True
            return
        if self._function(name, node).language == DATALOG:
            wanted = self._about(name, node)
            wanted.has_facts = True
            missing = wanted.is_derived and facts_relation(name, self._catalog) is None
            wanted.changed = wanted.changed or missing

    def _note_limit(self, node: syntax.Directive) -> None:
        given = node.parameters.get("n", "")
        if not re.fullmatch("[0-9]{1,18}", given):
            raise SyntaxFault(
                ".limitsize takes a number n",
                span=node.span,
                hint=f".limitsize {node.relation}(n=100)",
            )
        wanted = self._about(node.relation, node)
        wanted.changed = wanted.changed or wanted.limit != int(given)
        wanted.limit = int(given)

    def _about(self, name: str, node: syntax.Atom | syntax.Directive) -> Wanted:
        """The entry for a relation that rules are added to; it must be a Datalog relation."""
        if name not in self._wanted:
            function = self._function(name, node)
            if function.language != DATALOG:
                raise TypeFault(
                    f"{name} is not a Datalog relation, so no rules can be added to it",
                    code="not-updatable",
                    span=node.span,
                    hint="derive a relation with another name from it",
                )
            text = kept(function.text)
            self._wanted[name] = Wanted(
                text.declaration, list(text.rules), list(text.rule_texts), text.limit, function
            )
        return self._wanted[name]

    def _function(self, name: str, node: syntax.Atom | syntax.Directive) -> Function:
        function = self.relations.function(name)
        if function is None:
            raise unknown_relation(name, [*self._wanted, *self.relations.names()], node.span)
        return function

    # --- changes of the catalog ------------------------------------------------------------

    def _provide(self, name: str, wanted: Wanted) -> tuple[Function, Wanted] | None:
        """Create a stored relation, or make a derived one visible; what is returned must be
        checked."""
        text = relation_text(
            wanted.declaration, self.types, wanted.texts, wanted.limit, wanted.rules
        )
        columns = columns_of(wanted.declaration, self.types)
        if not wanted.is_derived:
            if wanted.known is None:
                self._forget_facts(name)
                stored = FunctionKind.STORED
                made = Function(name, columns, (), stored, text=text, language=DATALOG)
                store(self._runtime, made)
            return None
        rows = self._take_rows(wanted)
        if wanted.known is None:
            self._forget_facts(name)
        if (wanted.has_facts or rows) and facts_relation(name, self._catalog) is None:
            self._store_facts(name, wanted, rows)
        function = Function(name, (), columns, FunctionKind.DERIVED, text=text, language=DATALOG)
        if wanted.known is not None and wanted.known.kind is FunctionKind.DERIVED:
            function = replace(function, oid=wanted.known.oid)
        function = replace(function, relation=relation_of(function))
        self._catalog.provisional(function, Dependencies())
        return function, wanted

    def _store_facts(self, name: str, wanted: Wanted, rows: list[tuple[object, ...]]) -> None:
        declaration = replace(wanted.declaration, name=name)
        columns = columns_of(declaration, self.types)
        text = relation_text(declaration, self.types, (), None)
        function = Function(
            facts_name(name),
            columns,
            (),
            FunctionKind.STORED,
            text=text,
            language=DATALOG,
            facts_of=name,
        )
        base = store(self._runtime, function)
        assert base.relation is not None
        self._runtime.engine.add_many(base.relation, rows)

    def _take_rows(self, wanted: Wanted) -> list[tuple[object, ...]]:
        """The rows of a stored relation that gets its first rule; it is no longer stored then."""
        known = wanted.known
        if known is None or known.kind is not FunctionKind.STORED:
            return []
        self._runtime.rules.before_remaking(known)
        assert known.relation is not None
        rows = self._runtime.engine.matching(known.relation, {})
        self._catalog.remove_function(known)
        return rows

    def _forget_facts(self, name: str) -> None:
        """The facts left behind when a relation was dropped."""
        for each in self._catalog.overloads(facts_name(name)):
            self._catalog.remove_function(each)

    def _check(self, made: list[tuple[Function, Wanted]]) -> None:
        """Raise what is wrong with the rules, located in this text; then store them."""
        own: list[Definition] = []
        mentioned: dict[str, frozenset[str]] = {}
        for function, wanted in made:
            found, names = translate_rules(function, wanted.rules, self._catalog, self.types)
            own += found
            mentioned[function.id] = names
        goal = mentioning(each.relation for each, _ in made if each.relation is not None)
        program = assemble(goal.relation, (goal, *own), self._catalog)
        for function, _ in made:
            assert function.relation is not None
            refuse_negative_cycles(Program(function.relation, program.definitions))
        check(program, self._catalog.hierarchy)
        for function, _ in made:
            self._catalog.add_function(function, Dependencies(mentioned[function.id]))

    def ensure_facts(self, name: str) -> None:
        """A derived relation is about to get a fact, so it needs a relation for facts."""
        function = self.relations.function(name)
        assert function is not None
        if facts_relation(name, self._catalog) is not None:
            return
        text = kept(function.text)
        wanted = Wanted(
            text.declaration, list(text.rules), list(text.rule_texts), text.limit, function, True
        )
        self._runtime.reactions.before_schema_change({name})
        made = self._provide(name, wanted)
        assert made is not None
        self._check([made])
        recheck(self._runtime, name)


def _shown(known: KnownRelation) -> str:
    pairs = zip(known.attributes, known.types, strict=True)
    return ", ".join(f"{name}: {type_}" for name, type_ in pairs)


def ignored(program: Text, inlined: Collection[Span] = ()) -> Iterator[tuple[str, Span]]:
    """Words that have no effect, with their positions. `inlined` are declarations that are
    expanded."""
    return _ignored(program.statements, frozenset(), inlined)


def _ignored(
    statements: Iterable[syntax.Statement], useful: frozenset[str], inlined: Collection[Span]
) -> Iterator[tuple[str, Span]]:
    for statement in statements:
        match statement:
            case syntax.Ignored():
                yield f"{statement.what} has no effect", statement.span
            case syntax.Declaration():
                words = useful | {"inline"} if statement.span in inlined else useful
                for word, span in statement.qualifiers:
                    if word not in words:
                        yield f"`{word}` has no effect", span
            case syntax.Component():
                yield from _ignored(statement.statements, frozenset({"overridable"}), inlined)
