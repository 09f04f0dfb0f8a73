"""Components are expanded: what `.init x = C<T>` makes stands there as if it had been written.

The statements of C, and of the components it inherits from, are copied with `x.` before each name
that they declare. A name in them means what the instance declares, else what the instance around
it declares, and so on outwards. Law: no component is left, and every span is one of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harken.errors import NameFault, SafetyFault, Span, TypeFault, counted, nearest
from harken.lang.datalog import syntax
from harken.lang.datalog.parser import Program
from harken.lang.datalog.tree_walk import rebuild, with_span

DEEPEST = 50
"""The most levels of nested instances."""
MOST = 10_000
"""The most instances that one text may create."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """The components that can be named at a place; a component has its own, those of its bases and
    those around it."""

    own: Mapping[str, syntax.Component]
    bases: tuple[_Scope, ...] = ()
    outer: _Scope | None = None
    binding: Mapping[str, _Meaning] = field(default_factory=dict)
    """What the parameters stand for that a component written here sees."""

    def find(self, name: str) -> tuple[syntax.Component, _Scope] | None:
        """A component and the scope that it is written in."""
        found = self._inside(name)
        return self.outer.find(name) if found is None and self.outer is not None else found

    def _inside(self, name: str) -> tuple[syntax.Component, _Scope] | None:
        if name in self.own:
            return self.own[name], self
        return next((found for each in self.bases if (found := each._inside(name))), None)

    def names(self) -> Iterator[str]:
        yield from self.own
        for each in (*self.bases, *((self.outer,) if self.outer is not None else ())):
            yield from each.names()


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What stands for a parameter: a name, and where it is to be looked up."""

    name: str
    prefix: str
    scope: _Scope


_Binding = Mapping[str, _Meaning]


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement, with what the parameters in it stand for."""

    statement: syntax.Statement
    scope: _Scope
    binding: _Binding
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class _Use:
    """A component that is named, found."""

    component: syntax.Component
    scope: _Scope
    binding: _Binding

    @property
    def key(self) -> tuple[str, Span, tuple[str, ...]]:
        given = tuple(each.name for each in self.binding.values())
        return self.component.name, self.component.span, given


def components_of(statements: Iterable[syntax.Statement]) -> dict[str, syntax.Component]:
    """The components that are declared, by name."""
    found: dict[str, syntax.Component] = {}
    for each in statements:
        if isinstance(each, syntax.Component) and found.setdefault(each.name, each) != each:
            raise NameFault(
                f"there is already a component {each.name}", code="exists", span=each.span
            )
    return found


def expand(program: Program, known: Mapping[str, syntax.Component] | None = None) -> Program:
    """The program without components. `known` are those of earlier texts."""
    if not any(isinstance(each, syntax.Structure) for each in program.statements):
        return program
    expansion = _Expansion(known or {})
    return replace(program, statements=tuple(expansion.run(program.statements)))


@dataclass(slots=True)
class _Expansion:
    known: Mapping[str, syntax.Component]
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    parts: list[_Part] = field(default_factory=list)
    instances: int = 0

    def run(self, statements: Sequence[syntax.Statement]) -> list[syntax.Statement]:
        """All names are collected before any is looked up: a text may declare in any order."""
        scope = _Scope({**self.known, **components_of(statements)})
        self._collect([_Part(each, scope, {}) for each in statements], "", ())
        return [self._renamed(part) if part.prefix else part.statement for part in self.parts]

    def _collect(self, given: Iterable[_Part], prefix: str, within: tuple[_Use, ...]) -> None:
        instances: set[str] = set()
        for part in given:
            match part.statement:
                case syntax.Component() | syntax.Override():
                    continue
                case syntax.Instance() as instance:
                    if instance.name in instances:
                        raise NameFault(
                            f"there is already an instance {prefix}{instance.name}",
                            code="exists",
                            span=instance.span,
                        )
                    instances.add(instance.name)
                    self._instantiate(instance, part, prefix, within)
                    continue
                case syntax.Declaration(name=name):
                    self.relations.add(prefix + name)
                case syntax.TypeDeclaration(name=name):
                    self.types.add(prefix + name)
            self.parts.append(replace(part, prefix=prefix))

    def _instantiate(
        self, node: syntax.Instance, part: _Part, prefix: str, within: tuple[_Use, ...]
    ) -> None:
        use = self._find(node.component, part, prefix)
        way = [each.component.name for each in (*within, use)]
        if use.key in [each.key for each in within] or len(way) > DEEPEST:
            raise _endless(f"an instance of {way[-1]} would hold another one:", way, node.span)
        self.instances += 1
        if self.instances > MOST:
            raise SafetyFault(
                f"this text has more than {MOST} instances", code="too-complex", span=node.span
            )
        inner = f"{prefix}{node.name}."
        found, _ = self._contents(use, inner, frozenset(), ())
        self._collect(found, inner, (*within, use))

    # --- which component -------------------------------------------------------------------

    def _find(self, node: syntax.ComponentType, part: _Part, prefix: str) -> _Use:
        bound = part.binding.get(node.name)
        name = bound.name if bound is not None else node.name
        found = part.scope.find(name)
        if found is None and bound is not None:
            found = bound.scope.find(name)
        if found is None:
            near = nearest(name, part.scope.names())
            raise NameFault(
                f"there is no component {name}",
                code="unknown-component",
                span=node.span,
                hint=f"did you mean {near}?" if near else f"declare it: .comp {name} {{ ... }}",
            )
        component, written = found
        if self.known.get(component.name) is component:
            component = with_span(component, node.span)
        if len(node.arguments) != len(component.parameters):
            raise TypeFault(
                f"{name} has {counted(len(component.parameters), 'parameter')}, and "
                f"{counted(len(node.arguments), 'type')} here",
                code="arity",
                span=node.span,
                hint=f"it is {name}<{', '.join(component.parameters)}>",
            )
        given = (
            part.binding.get(each, _Meaning(each, prefix, part.scope)) for each in node.arguments
        )
        own = dict(zip(component.parameters, given, strict=True))
        return _Use(component, written, {**written.binding, **own})

    # --- what is in it ---------------------------------------------------------------------

    def _contents(
        self, use: _Use, prefix: str, overridden: frozenset[str], heirs: tuple[_Use, ...]
    ) -> tuple[list[_Part], _Scope]:
        """The statements of a component and its bases, without rules that an heir overrides."""
        component = use.component
        if use.key in [each.key for each in heirs]:
            way = [each.component.name for each in (*heirs, use)]
            raise _endless(f"{component.name} inherits from itself:", way, component.span)
        overrides = {
            each.relation: each
            for each in component.statements
            if isinstance(each, syntax.Override)
        }
        inherited: list[_Part] = []
        scopes: list[_Scope] = []
        for base in component.bases:
            here = _Part(component, use.scope, use.binding)
            found, scope = self._contents(
                self._find(base, here, prefix), prefix, overridden | set(overrides), (*heirs, use)
            )
            inherited += found
            scopes.append(scope)
        for each in overrides.values():
            _check_override(each, component, inherited)
        components = components_of(component.statements)
        own = _Scope(components, tuple(scopes), use.scope, use.binding)
        kept = (_without(each, overridden) for each in component.statements)
        parts = [_Part(each, own, use.binding) for each in kept if each is not None]
        return inherited + parts, own

    # --- names -----------------------------------------------------------------------------

    def _renamed(self, part: _Part) -> syntax.Statement:
        def relation(name: str) -> str:
            return _outwards(name, part.prefix, self.relations)

        def type_(name: str) -> str:
            bound = part.binding.get(name)
            if bound is not None:
                return _outwards(bound.name, bound.prefix, self.types)
            return _outwards(name, part.prefix, self.types)

        def change(node: Any) -> Any:
            match node:
                case syntax.Atom():
                    return replace(node, name=relation(node.name))
                case syntax.Directive() | syntax.Monitor():
                    return replace(node, relation=relation(node.relation))
                case syntax.Declaration():
                    return replace(node, name=part.prefix + node.name)
                case syntax.Attribute() | syntax.Cast():
                    return replace(node, type=type_(node.type))
                case syntax.TypeDeclaration():
                    bases = tuple(map(type_, node.bases))
                    return replace(node, name=part.prefix + node.name, bases=bases, made=True)
                case syntax.Rule():
                    return replace(node, made=True)
            return node

        renamed: syntax.Statement = rebuild(part.statement, change)
        return renamed


def _outwards(name: str, prefix: str, declared: set[str]) -> str:
    """The innermost thing of this name: `a.b.r`, else `a.r`, else `r`, seen from `a.b`."""
    parts = prefix.split(".")[:-1]
    for length in range(len(parts), 0, -1):
        whole = ".".join((*parts[:length], name))
        if whole in declared:
            return whole
    return name


def _without(node: syntax.Statement, overridden: frozenset[str]) -> syntax.Statement | None:
    if not isinstance(node, syntax.Rule):
        return node
    heads = tuple(each for each in node.heads if each.name not in overridden)
    return replace(node, heads=heads) if heads else None


def _check_override(
    node: syntax.Override, component: syntax.Component, inherited: Iterable[_Part]
) -> None:
    found = [
        each.statement
        for each in inherited
        if isinstance(each.statement, syntax.Declaration) and each.statement.name == node.relation
    ]
    if not found:
        raise NameFault(
            f"{component.name} inherits no relation {node.relation}",
            code="unknown-relation",
            span=node.span,
        )
    if not any("overridable" in dict(each.qualifiers) for each in found):
        raise TypeFault(
            f"{node.relation} is not overridable",
            code="not-updatable",
            span=node.span,
            hint="say so where it is declared: .decl ... overridable",
        )


def _endless(what: str, way: Sequence[str], span: Span) -> NameFault:
    if len(way) > DEEPEST:
        way = [*way[:4], "..."]
    return NameFault(f"{what} {' → '.join(way)}", code="syntax", span=span)
