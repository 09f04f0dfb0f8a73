"""`activate` and `deactivate`: of a rule by its name, or of a rule that is a value.

The rule of a value is known only when the statement runs. Its arguments are checked then, by the
same laws as those of a rule that is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harken.database.evaluation import Evaluation, Frame
from harken.database.objects import deleted
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.shared_errors import unknown_rule
from harken.errors import Span, TypeFault
from harken.ir.relations import Column
from harken.ir.schema import Schema
from harken.lang.amosql import syntax
from harken.lang.amosql.scope import Local, Scope
from harken.statements.statement_errors import counted, how_to_convert
from harken.values.encoding import encode
from harken.values.types import INTEGER, NUMBER, RULE, Type


class KnownRules(Schema, Protocol):
    @property
    def rules(self) -> dict[str, tuple[int, str]]: ...

    def rule_parameters(self, name: str) -> tuple[Column, ...]: ...

    def rule_dependencies(self, name: str) -> Dependencies: ...


class Values(Protocol):
    """Compiles expressions, as values of these types."""

    def __call__(
        self,
        nodes: Sequence[syntax.Expression],
        scope: Scope,
        types: Sequence[Type] | None = None,
    ) -> Evaluation: ...


def named_rule(node: syntax.Activate | syntax.Deactivate, scope: Scope) -> str | None:
    """The name of the rule; None if a variable holds it. A variable of type rule hides a rule of
    its name, as variables do everywhere."""
    if isinstance(node.rule, syntax.InterfaceVariable):
        return None
    found = scope.find(node.rule.name)
    return None if isinstance(found, Local) and found.type == RULE else node.rule.name


def activation(
    node: syntax.Activate | syntax.Deactivate, scope: Scope, catalog: KnownRules, values: Values
) -> ChangeActivation | ChangeActivationOfValue:
    name = named_rule(node, scope)
    priority = node.priority if isinstance(node, syntax.Activate) else None
    if name is None:
        given = values((node.rule, *node.arguments), scope)
        if given.types[0] != RULE:
            raise TypeFault(
                f"a rule is needed here, but this is {given.types[0]}",
                code="type-mismatch",
                span=node.rule.span,
                hint="name a rule, or give a variable of the type rule",
            )
        return ChangeActivationOfValue(given, priority)
    if name not in catalog.rules:
        raise unknown_rule(name, catalog.rules, node.span)
    types = [column.type for column in catalog.rule_parameters(name)]
    if len(node.arguments) != len(types):
        raise _wrong_number(name, len(types), len(node.arguments), node.span)
    return ChangeActivation(name, values(node.arguments, scope, types), priority)


@dataclass(frozen=True, slots=True)
class ChangeActivation:
    """`activate` with a priority, or `deactivate` (priority None)."""

    rule: str
    arguments: Evaluation
    priority: int | None

    def run(self, runtime: Runtime, frame: Frame) -> None:
        for row in self.arguments.stored(frame):
            _change(runtime, self.rule, row, self.priority)


@dataclass(frozen=True, slots=True)
class ChangeActivationOfValue:
    """The same for each row of a rule and its arguments. All rows are checked before the first
    takes effect."""

    given: Evaluation
    priority: int | None

    def run(self, runtime: Runtime, frame: Frame) -> None:
        names = {oid: name for name, (oid, _) in runtime.catalog.rules.items()}
        found = []
        for oid, *values in self.given.stored(frame):
            if oid not in names:
                raise deleted()
            found.append((names[oid], self._fitted(runtime, names[oid], values)))
        for name, row in found:
            _change(runtime, name, row, self.priority)

    def _fitted(self, runtime: Runtime, rule: str, values: Sequence[Any]) -> tuple[Any, ...]:
        parameters = runtime.catalog.rule_parameters(rule)
        if len(parameters) != len(values):
            raise _wrong_number(rule, len(parameters), len(values), None)
        types = self.given.types[1:]
        return tuple(
            self._value(runtime, rule, parameter, value, type_)
            for parameter, value, type_ in zip(parameters, values, types, strict=True)
        )

    def _value(
        self, runtime: Runtime, rule: str, parameter: Column, value: Any, type_: Type
    ) -> Any:
        """The stored value as one of the parameter's type."""
        wanted, given = parameter.type, type_.name
        if wanted.surrogate and type_.surrogate:
            types = runtime.objects.types_of(value)
            if not types:
                raise deleted()
            hierarchy = runtime.catalog.hierarchy
            if any(hierarchy.is_subtype(Type(each), wanted) for each in types):
                return value
            given = " and ".join(sorted(types))
        elif wanted == type_:
            return value
        elif (type_, wanted) == (INTEGER, NUMBER):
            return encode(value, wanted)
        raise TypeFault(
            f"the parameter {parameter.name} of the rule {rule} is {wanted}, but this is {given}",
            code="type-mismatch",
            hint=how_to_convert(wanted),
        )


def _change(runtime: Runtime, rule: str, row: tuple[Any, ...], priority: int | None) -> None:
    if priority is None:
        runtime.rules.deactivate(rule, row)
    else:
        runtime.rules.activate(rule, row, priority)


def _wrong_number(rule: str, wanted: int, given: int, span: Span | None) -> TypeFault:
    return TypeFault(
        f"{counted(wanted, 'argument')} needed by the rule {rule}, not {given}",
        code="arity",
        span=span,
        hint="an activation gives each parameter of the rule a value",
    )
