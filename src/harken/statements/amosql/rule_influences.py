"""What AMOSQL rules may do to each other: what their conditions read, and their actions write.

An action is followed into the procedures that it calls. What a Python procedure changes is not
known, and counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harken.calculus.rule_findings import Finding, Influence, Writes, cycles, unordered
from harken.database.catalog import Catalog
from harken.ir.clauses import Aggregation, Atom, Program, stored_relations
from harken.ir.relations import Kind, Role, is_extent
from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.lang.amosql.tree_walk import descendants
from harken.statements.amosql.function_syntax import syntax_of
from harken.statements.language_registry import language_named

DEEPEST = 100
"""How many levels of procedures an action is followed into."""


@dataclass(slots=True)
class _Written:
    """The relations that an action inserts into and deletes from, with their names."""

    catalog: Catalog
    inserts: dict[str, str] = field(default_factory=dict)
    deletes: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def follow(self, node: syntax.Node, depth: int = 0) -> None:
        for each, _ in descendants(node):
            match each:
                case syntax.Update(verb=verb, target=target):
                    self._update(verb, target)
                case syntax.Call(function=name) if depth < DEEPEST:
                    self._call(name, depth)
                case syntax.CreateInstances(type=name):
                    self._extents([name], self.inserts)
                    for given in each.properties:
                        self._change(given, self.inserts)
                case syntax.AddType(type=name):
                    self._extents([name], self.inserts)
                case syntax.RemoveType() | syntax.DeleteObjects():
                    self._extents(None, self.deletes)

    def _update(self, verb: str, target: syntax.Call) -> None:
        if verb in ("set", "add"):
            self._change(target.function, self.inserts)
        if verb in ("set", "remove"):
            self._change(target.function, self.deletes)

    def _change(self, name: str, into: dict[str, str]) -> None:
        for function in self.catalog.named(name):
            if function.relation is None:
                continue
            if function.kind is FunctionKind.STORED:
                into[function.relation.id] = function.name
            elif function.kind is FunctionKind.DERIVED:
                clauses = language_named(function.language).clauses(function, self.catalog)
                reached = stored_relations(
                    Program(function.relation, {each.relation.id: each for each in clauses})
                )
                into |= {key: each.name for key, each in reached.items()}

    def _call(self, name: str, depth: int) -> None:
        for function in self.catalog.named(name):
            if function.kind is FunctionKind.PROCEDURE and function.id not in self.seen:
                self.seen.add(function.id)
                body = _body(function)
                if body is not None:
                    self.follow(body, depth + 1)

    def _extents(self, types: list[str] | None, into: dict[str, str]) -> None:
        """The objects of these types and of all above them; without types of any type."""
        hierarchy = self.catalog.hierarchy
        wanted = None if types is None else {a for t in types for a in hierarchy.ancestors(t)}
        for relation in self.catalog.stored_relations():
            own = relation.columns[0].type.name
            if is_extent(relation) and (wanted is None or own in wanted or own in (types or ())):
                into[relation.id] = f"the objects of {own}"


def _body(function: Function) -> syntax.Node | None:
    body = syntax_of(function).body
    return body if isinstance(body, syntax.Node) else None


def findings_of(
    names: Iterable[str], catalog: Catalog, programs: dict[str, Program]
) -> list[Finding]:
    """The findings about some rules of a catalog; `programs` are their conditions."""
    rules = list(names)
    writes, influences, labels = dict[str, Writes](), list[Influence](), dict[str, _Written]()
    for name in rules:
        node = parse_statement(catalog.rules[name][1])
        assert isinstance(node, syntax.CreateRule)
        written = labels[name] = _Written(catalog)
        written.follow(node.action)
        computes = not written.inserts.keys().isdisjoint(written.deletes) or bool(written.inserts)
        writes[name] = Writes(
            {key: [None] for key in written.inserts},
            {key: [None] for key in written.deletes},
            computes,
        )
    for target in rules:
        reads = dict(_signs(programs[target]))
        for source in rules:
            influences += _influences(source, target, labels[source], reads)
    found = cycles(rules, influences, writes)
    for each in unordered(rules, influences, writes, {}):
        hint = f"activate one with a priority: activate {each.rules[0]}() priority 1;"
        found.append(Finding(each.kind, each.rules, each.message, hint))
    return found


def _influences(
    source: str, target: str, written: _Written, reads: dict[str, set[bool]]
) -> Iterator[Influence]:
    for rows, is_insert, sign in (
        (written.inserts, True, "+"),
        (written.deletes, False, "-"),
    ):
        for key, name in rows.items():
            for positive in reads.get(key, ()):
                yield Influence(source, target, positive == is_insert, f"{sign}{name}")


def _signs(program: Program) -> Iterator[tuple[str, set[bool]]]:
    """For each stored relation that a condition reads, whether more rows may make it true, or
    fewer, or both."""
    found: dict[str, set[bool]] = {}
    seen: set[tuple[str, bool]] = set()
    waiting = [(program.goal.id, True)]
    while waiting:
        name, sign = waiting.pop()
        definition = program.definitions.get(name)
        if (name, sign) in seen or definition is None:
            continue
        seen.add((name, sign))
        for clause in definition.clauses:
            for literal in clause.body:
                if not isinstance(literal, Atom | Aggregation):
                    continue
                atom = literal if isinstance(literal, Atom) else literal.atom
                signs = {sign != atom.negated} if isinstance(literal, Atom) else {True, False}
                if atom.relation.kind is Kind.STORED:
                    if atom.relation.role is not Role.ACTIVATIONS:
                        found.setdefault(atom.relation.id, set()).update(signs)
                else:
                    waiting += [(atom.relation.id, each) for each in signs]
    yield from found.items()
