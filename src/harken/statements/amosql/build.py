"""Compiles the syntax of a statement into a step.

Every expression becomes an ObjectLog query (or none, if it consists of values only); the procedural
statements around the expressions become steps. Nothing here evaluates.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.database.catalog import Catalog
from harken.database.evaluation import Evaluation
from harken.database.schema_cache import Dependencies
from harken.engines.protocol import Engine
from harken.errors import Span, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Literal
from harken.ir.past_relations import STATEMENT, TRANSACTION, since_statement
from harken.ir.schema import Function, FunctionKind
from harken.ir.terms import Constant, Parameter, Term
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import Argument, resolve
from harken.lang.amosql.program_draft import Branch
from harken.lang.amosql.scope import Local, Scope
from harken.lang.amosql.translate import (
    InterfaceTypes,
    Translator,
    declared_twice,
    no_interface_variables,
)
from harken.planner.prepare import prepare
from harken.statements.amosql import steps
from harken.statements.amosql.activations import activation, named_rule
from harken.statements.amosql.called_values import AfterCalls, CalledValues
from harken.statements.amosql.function_syntax import as_statement_query, syntax_of
from harken.statements.amosql.result_labels import labels_of
from harken.statements.amosql.updates import Target, find_target
from harken.statements.statement_errors import (
    counted,
    how_to_convert,
    named_twice,
    no_local,
    no_old_values,
    not_inside,
    outside,
)
from harken.values.types import Type


class Builder:
    """Builds the steps of one statement or procedure, and collects what its text depends on."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        interface: InterfaceTypes = no_interface_variables,
        function: Function | None = None,
        rule: bool = False,
        since: str = TRANSACTION,
    ) -> None:
        """For the action of a `rule`, the function is the procedure that runs it. Old values are
        those `since` the transaction, or the statement, began."""
        self._engine = engine
        self._catalog = catalog
        self._interface = interface
        self._function = function
        self._rule = rule
        self._since = since
        self._targets: dict[str, Target] = {}
        self._procedures: dict[str, steps.Procedure] = {}
        self._called_values = CalledValues(catalog, self._procedure_call)
        self.called: set[str] = set()
        self.mentioned: set[str] = set()

    def share(self, other: Builder) -> None:
        """Use what another builder for the same schema has already compiled."""
        self._targets = other._targets
        self._procedures = other._procedures

    @property
    def dependencies(self) -> Dependencies:
        surrogates = (name for name in self.mentioned if name in self._catalog.hierarchy)
        return Dependencies(frozenset(self.called), frozenset(surrogates))

    # --- statements ------------------------------------------------------------------------

    def statement(self, node: syntax.Statement, scope: Scope) -> steps.CompiledStep:
        rest, calls = self._called_values.taken_out(node, scope)
        step = self._statement(rest, scope)
        return AfterCalls(calls, step) if calls else step

    def _statement(self, node: syntax.Statement, scope: Scope) -> steps.CompiledStep:
        match node:
            case syntax.ExpressionStatement():
                return self._expression(node, scope)
            case syntax.Update():
                return self._update(node, scope)
            case syntax.Assign():
                return self._assign(node, scope)
            case syntax.CreateInstances():
                return self._instances(node, scope)
            case syntax.AddType() | syntax.RemoveType():
                type_ = self._surrogate(node.type, node.span)
                objects = self._objects(node.objects, scope)
                return steps.ChangeTypes(type_, objects, isinstance(node, syntax.AddType))
            case syntax.DeleteObjects():
                doomed = tuple(self._objects((each,), scope) for each in node.objects)
                return steps.DeleteObjects(doomed)
            case syntax.Print():
                return steps.PrintValues(self.values(node.values, scope))
            case syntax.Block():
                return self._block(node, scope)
            case syntax.If():
                return self._if(node, scope)
            case syntax.ForEach():
                return self._for_each(node, scope)
            case syntax.Return():
                return self._return(node, scope)
            case syntax.Rollback():
                return steps.Rollback()
            case syntax.Check():
                return steps.CheckRules()
            case syntax.Activate() | syntax.Deactivate():
                return self._activation(node, scope)
        if self._function is None:
            raise outside(node)
        raise not_inside("rule's action" if self._rule else "procedure", node)

    def _expression(self, node: syntax.ExpressionStatement, scope: Scope) -> steps.CompiledStep:
        call = self._procedure_call(node.expression, scope)
        if call is not None:
            return call
        query = as_statement_query(node.expression)
        evaluation = self.query(query, scope)
        return steps.ShowRows(evaluation, labels_of(query, len(evaluation.types), self._catalog))

    def _update(self, node: syntax.Update, scope: Scope) -> steps.CompiledStep:
        translator = self._translator()
        literals, terms = translator.values(node.target.arguments, scope)
        arguments = [translator.draft.argument(term) for term in terms]
        candidates = resolve(
            self._catalog, node.target.function, arguments, node.target.qualifier, node.target.span
        )
        self._note(translator, node.target.function)
        if len(candidates) == 1:
            self._target(candidates[0], node.target.span)
        types = [column.type for column in candidates[-1].parameters]
        given = self._evaluation(translator, literals, terms, types, node.target.span)
        results = [column.type for column in candidates[-1].results]
        value = self.values((node.value,), scope, results)
        return steps.ChangeFunction(
            node.verb,
            node.target.function,
            candidates,
            given,
            value,
            lambda function: self._target(function, node.target.span),
        )

    def _target(self, function: Function, span: Span | None) -> Target:
        known = self._targets.get(function.id)
        if known is None:
            known = self._targets[function.id] = find_target(function, self._catalog, span)
        return known

    def _assign(self, node: syntax.Assign, scope: Scope) -> steps.CompiledStep:
        produce = self._produce(node.value, scope)
        if isinstance(node.target, syntax.InterfaceVariable):
            if self._function is not None:
                no_interface_variables(node.target)
            return steps.Assign(node.target.name, node.target.slot, True, produce)
        found = scope.find(node.target.name)
        if not isinstance(found, Local):
            raise no_local(node.target.name, node.target.span)
        produce = self._produce(node.value, scope, found.type)
        return steps.Assign(found.name, None, False, produce)

    def _produce(
        self, node: syntax.Expression, scope: Scope, type_: Type | None = None
    ) -> steps.Produce:
        call = self._procedure_call(node, scope)
        if call is not None:
            return call
        if isinstance(node, syntax.Query):
            return steps.Evaluate(self.query(node, scope))
        return steps.Evaluate(self.values((node,), scope, [type_] if type_ else None))

    def _instances(self, node: syntax.CreateInstances, scope: Scope) -> steps.CompiledStep:
        type_ = self._surrogate(node.type, node.span)
        self._refuse_twice(node)
        targets = [self._property(type_, name, node.span) for name in node.properties]
        instances = []
        for instance in node.instances:
            if len(instance.values) != len(targets):
                raise TypeFault(
                    f"{counted(len(targets), 'property', 'properties')} named, but this "
                    f"gives {len(instance.values)}",
                    code="arity",
                    span=instance.span,
                    hint="give one value for each property, in the same order",
                )
            given = tuple(
                (target, self.values((value,), scope, [c.type for c in target.function.results]))
                for target, value in zip(targets, instance.values, strict=True)
            )
            self._check_holder(instance, type_, scope)
            instances.append(steps.NewObject(instance.variable, instance.local, given))
        return steps.CreateObjects(type_, tuple(instances))

    def _refuse_twice(self, node: syntax.CreateInstances) -> None:
        """A value that the same statement would overwrite is a mistake."""
        for position, name in enumerate(node.properties):
            if name in node.properties[:position]:
                raise named_twice(name, node.span, "name each property once")
        held: set[tuple[str, bool]] = set()
        for each in node.instances:
            if each.variable is not None and (each.variable, each.local) in held:
                shown = each.variable if each.local else f":{each.variable}"
                raise named_twice(shown, each.span, "give each object a variable of its own")
            if each.variable is not None:
                held.add((each.variable, each.local))

    def _check_holder(self, instance: syntax.Instance, type_: Type, scope: Scope) -> None:
        """Check the type of the variable that will hold a new object."""
        if instance.variable is None:
            return
        if not instance.local:
            if self._function is not None:
                no_interface_variables(
                    syntax.InterfaceVariable(instance.variable, span=instance.span)
                )
            return
        found = scope.find(instance.variable)
        if not isinstance(found, Local):
            raise no_local(instance.variable, instance.span)
        if not self._catalog.hierarchy.is_subtype(type_, found.type):
            raise TypeFault(
                f"{instance.variable} holds {found.type}, but this is {type_}",
                code="type-mismatch",
                span=instance.span,
                hint=f"declare it as {type_}",
            )

    def _property(self, type_: Type, name: str, span: Span | None) -> Target:
        self.called.add(name)
        (function,) = resolve(self._catalog, name, [Argument((type_,), exact=True)], None, span)
        return self._target(function, span)

    def _objects(self, nodes: Sequence[syntax.Expression], scope: Scope) -> Evaluation:
        evaluation = self.values(nodes, scope)
        for type_, node in zip(evaluation.types, nodes, strict=False):
            if not type_.surrogate:
                raise TypeFault(
                    f"an object is needed here, but this is {type_}",
                    code="type-mismatch",
                    span=node.span,
                    hint="name it by its interface variable, `:x`",
                )
        return evaluation

    def _block(self, node: syntax.Block, scope: Scope) -> steps.CompiledStep:
        inner = scope.child()
        made = []
        for statement in node.statements:
            if isinstance(statement, syntax.DeclareLocals):
                self._declare(statement, inner)
            else:
                made.append(self.statement(statement, inner))
        return steps.Block(tuple(made))

    def _declare(self, node: syntax.DeclareLocals, scope: Scope) -> None:
        for declaration in node.variables:
            type_ = self._type(declaration.type, declaration.span)
            name = declaration.name or declaration.type
            if name in scope.names:
                raise declared_twice(name, declaration.span)
            scope.names[name] = Local(name, type_)

    def _if(self, node: syntax.If, scope: Scope) -> steps.CompiledStep:
        truth = syntax.Literal(True, span=node.condition.span)
        query = syntax.Query((truth,), (), node.condition, span=node.condition.span)
        then = self.statement(node.then, scope)
        otherwise = self.statement(node.otherwise, scope) if node.otherwise else None
        return steps.If(self.query(query, scope), then, otherwise)

    def _for_each(self, node: syntax.ForEach, scope: Scope) -> steps.CompiledStep:
        names = tuple(variable.name or variable.type for variable in node.variables)
        items = tuple(
            syntax.Name(name, span=variable.span)
            for name, variable in zip(names, node.variables, strict=True)
        )
        rows = self.query(syntax.Query(items, node.variables, node.where, span=node.span), scope)
        inner = scope.child()
        for name, variable in zip(names, node.variables, strict=True):
            inner.names[name] = Local(name, self._type(variable.type, variable.span))
        return steps.ForEach(names, rows, self.statement(node.body, inner))

    def _return(self, node: syntax.Return, scope: Scope) -> steps.CompiledStep:
        if self._function is None:
            raise outside(node)
        results = [column.type for column in self._function.results]
        call = self._procedure_call(node.value, scope)
        if call is not None:
            return steps.Return(call)
        if isinstance(node.value, syntax.Query):
            return steps.Return(steps.Evaluate(self.query(node.value, scope, results)))
        return steps.Return(steps.Evaluate(self.values((node.value,), scope, results)))

    def _activation(
        self, node: syntax.Activate | syntax.Deactivate, scope: Scope
    ) -> steps.CompiledStep:
        name = named_rule(node, scope)
        if name is not None:
            self.called.add(f"rule {name}")
        return activation(node, scope, self._catalog, self.values)

    # --- procedures ------------------------------------------------------------------------

    def _procedure_call(self, node: syntax.Expression, scope: Scope) -> steps.CallProcedure | None:
        """The step for a call, used as a statement, of something with effects; None for any other
        expression."""
        if not isinstance(node, syntax.Call):
            return None
        overloads = self._catalog.overloads(node.function)
        if not any(f.has_effects or f.kind is FunctionKind.FOREIGN for f in overloads):
            return None
        translator = self._translator()
        literals, terms = translator.values(node.arguments, scope)
        arguments = [translator.draft.argument(term) for term in terms]
        candidates = resolve(self._catalog, node.function, arguments, node.qualifier, node.span)
        callable_ = all(f.has_effects or f.kind is FunctionKind.FOREIGN for f in candidates)
        if not callable_:
            return None
        self._note(translator, node.function)
        least = candidates[-1]
        types = None if least.variadic else [column.type for column in least.parameters]
        given = self._evaluation(translator, literals, terms, types, node.span)
        return steps.CallProcedure(node.function, candidates, given, self.procedure)

    def procedure(self, function: Function) -> steps.Procedure:
        """The compiled body of a procedure; bodies are built when first called."""
        known = self._procedures.get(function.id)
        if known is None:
            builder = Builder(self._engine, self._catalog, function=function, since=self._since)
            builder.share(self)
            known = builder.procedure_body(function, syntax_of(function))
            self._procedures[function.id] = known
        return known

    def procedure_body(self, function: Function, node: syntax.CreateFunction) -> steps.Procedure:
        scope = Scope()
        for column in function.parameters:
            scope.names[column.name] = Local(column.name, column.type)
        assert not isinstance(node.body, syntax.StoredBody | syntax.ForeignBody | syntax.Query)
        return steps.Procedure(function, (self.statement(node.body, scope),))

    # --- evaluations -----------------------------------------------------------------------

    def values(
        self,
        nodes: Sequence[syntax.Expression],
        scope: Scope,
        types: Sequence[Type] | None = None,
    ) -> Evaluation:
        translator = self._translator()
        literals, terms = translator.values(nodes, scope)
        self._note(translator)
        span = nodes[0].span | nodes[-1].span if nodes else None
        return self._evaluation(translator, literals, terms, types, span)

    def query(
        self, node: syntax.Query, scope: Scope, types: Sequence[Type] | None = None
    ) -> Evaluation:
        translator = self._translator()
        bag = not node.distinct and any(self._is_bag_call(item) for item in node.items)
        branches = translator.branches(node, scope, bag)
        if types is not None:
            for branch in branches:
                branch.items = self._fit(translator, branch.items, types, branch.body, node.span)
        self._note(translator)
        return self._compiled(translator, branches, bag)

    def _is_bag_call(self, node: syntax.Expression) -> bool:
        return isinstance(node, syntax.Call) and any(
            function.bag for function in self._catalog.overloads(node.function)
        )

    def _evaluation(
        self,
        translator: Translator,
        literals: list[Literal],
        terms: tuple[Term, ...],
        types: Sequence[Type] | None,
        span: Span | None,
    ) -> Evaluation:
        body = list(literals)
        if types is not None:
            terms = self._fit(translator, terms, types, body, span)
        if not body and all(isinstance(term, Constant | Parameter) for term in terms):
            sources = tuple(translator.draft.parameters.sources)
            types = tuple(term.type for term in terms)
            return Evaluation(types, sources, terms, None, self._catalog.home)
        bag = any(isinstance(literal, Atom) and not literal.relation.is_set for literal in body)
        return self._compiled(translator, [Branch(body, terms, [])], bag)

    def _fit(
        self,
        translator: Translator,
        terms: tuple[Term, ...],
        types: Sequence[Type],
        body: list[Literal],
        span: Span | None,
    ) -> tuple[Term, ...]:
        """The terms as values of the wanted types; raises TypeFault if they are not."""
        if len(terms) != len(types):
            raise TypeFault(
                f"{counted(len(types), 'value')} needed here, but this gives {len(terms)}",
                code="arity",
                span=span,
                hint="several columns are written as a tuple: <a, b>",
            )
        for term, wanted in zip(terms, types, strict=True):
            if not translator.draft.argument(term).may_fit(wanted, self._catalog.hierarchy):
                raise TypeFault(
                    (f"{wanted} is needed here, but this is {translator.draft.argument(term)}"),
                    code="type-mismatch",
                    span=span,
                    hint=how_to_convert(wanted),
                )
        return tuple(
            translator.draft.coerce(term, wanted, body, span)
            for term, wanted in zip(terms, types, strict=True)
        )

    def _compiled(self, translator: Translator, branches: list[Branch], bag: bool) -> Evaluation:
        relation = translator.draft.query_relation("query", (), branches, bag)
        translator.draft.define(relation, (), branches)
        program = assemble(relation, translator.draft.auxiliaries.values(), self._catalog)
        if self._since == STATEMENT:
            program = since_statement(program)
        plan = prepare(program, self._catalog.hierarchy)
        query = self._engine.compile(plan)
        if self._function is None and (late := self._engine.histories.began_late(plan.program)):
            raise no_old_values(late)
        types = tuple(column.type for column in relation.columns)
        sources = tuple(translator.draft.parameters.sources)
        return Evaluation(types, sources, None, query, self._catalog.home)

    # --- auxiliaries -----------------------------------------------------------------------

    def _translator(self) -> Translator:
        return Translator.for_schema(self._catalog, interface=self._interface)

    def _note(self, translator: Translator, *names: str) -> None:
        self.called |= translator.draft.called | set(names)
        self.mentioned |= translator.draft.mentioned

    def _type(self, name: str, span: Span | None) -> Type:
        translator = self._translator()
        type_ = translator.draft.type(name, span)
        self._note(translator)
        return type_

    def _surrogate(self, name: str, span: Span | None) -> Type:
        type_ = self._type(name, span)
        if not type_.surrogate:
            raise TypeFault(
                f"{name} is a type of values, not of objects",
                code="type-mismatch",
                span=span,
                hint="objects are of types made with `create type`",
            )
        return type_
