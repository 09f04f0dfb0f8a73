"""Function definitions: from the text in the catalog to clauses, or to the steps of a procedure.

A definition always means what its text means in the present schema. A new overload can turn an
early binding into a late one, so compiled definitions are dropped when the schema changes.
"""

from __future__ import annotations

from harken.database.catalog import Catalog
from harken.database.schema_cache import Dependencies
from harken.errors import TypeFault, counted
from harken.ir.assemble import assemble
from harken.ir.clauses import Definition
from harken.ir.dependencies import inputs_are_key
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind, Schema
from harken.ir.strata import depends_on
from harken.ir.terms import Term, Variable
from harken.lang.amosql import syntax
from harken.lang.amosql.program_draft import Declared, Draft
from harken.lang.amosql.scope import Scope
from harken.lang.amosql.translate import Translator
from harken.planner.prepare import prepare
from harken.statements.amosql.function_syntax import as_statement_query, syntax_of
from harken.values.types import Type


def translate_function(
    function: Function, schema: Schema, node: syntax.CreateFunction | None = None
) -> tuple[tuple[Definition, ...], Translator]:
    """The clauses of a derived function, and the translator that knows what they refer to."""
    node = node or syntax_of(function)
    query = _query_of(node)
    relation = function.relation
    assert relation is not None
    translator = Translator.for_schema(schema, owner=function.id)
    scope = Scope()
    declared: Declared = []
    for column in function.parameters:
        declared.append((translator.draft.declare(scope, column.name, column.type), column.type))
    head = tuple(variable for variable, _ in declared)
    results = _declare_results(translator, node, function, scope)
    branches = translator.branches(query, scope, bag=function.bag)
    clauses = []
    for branch in branches:
        body = list(branch.body)
        _check_results(translator, function, branch.items, query)
        items = tuple(
            translator.draft.coerce(term, column.type, body, query.span)
            for term, column in zip(branch.items, function.results, strict=True)
        )
        used = [pair for name, pair in results.items() if name in scope.used]
        clauses.append(
            translator.draft.clause(
                relation, (*head, *items), body, [*declared, *used, *branch.declared]
            )
        )
    main = Definition(relation, tuple(clauses))
    return (main, *translator.draft.auxiliaries.values()), translator


def _query_of(node: syntax.CreateFunction) -> syntax.Query:
    if isinstance(node.body, syntax.Query):
        return node.body
    assert isinstance(node.body, syntax.ExpressionStatement)
    return as_statement_query(node.body.expression)


def _declare_results(
    translator: Translator, node: syntax.CreateFunction, function: Function, scope: Scope
) -> dict[str, tuple[Variable, Type]]:
    """Named results are variables of the body, unless a parameter has the name already."""
    found = {}
    for declaration, column in zip(node.results, function.results, strict=True):
        if declaration.name is not None and declaration.name not in scope.names:
            variable = translator.draft.declare(scope, declaration.name, column.type)
            found[declaration.name] = (variable, column.type)
    return found


def _check_results(
    translator: Translator, function: Function, items: tuple[Term, ...], query: syntax.Query
) -> None:
    if len(items) != len(function.results):
        raise TypeFault(
            f"{function.name} has {counted(len(function.results), 'result column')}, but "
            f"its query selects {len(items)}",
            code="arity",
            span=query.span,
            hint="select one value for each result column",
        )
    for term, column in zip(items, function.results, strict=True):
        if not translator.draft.argument(term).fits(column.type, translator.draft.schema.hierarchy):
            raise TypeFault(
                f"{function.name} gives {column.type}, but its query selects {term.type}",
                code="type-mismatch",
                span=query.span,
                hint="change the declared result, or select a value of that type",
            )


def check_function(
    function: Function, schema: Schema, node: syntax.CreateFunction | None = None
) -> tuple[Dependencies, bool]:
    """Check a definition; returns what it depends on, and whether its arguments determine its
    results."""
    definitions, translator = translate_function(function, schema, node)
    main = definitions[0]
    program = assemble(main.relation, definitions, schema)
    prepare(program, schema.hierarchy, range(main.relation.inputs))
    surrogates = frozenset(name for name in translator.draft.mentioned if name in schema.hierarchy)
    dependencies = Dependencies(frozenset(translator.draft.called), surrogates)
    recursive = any(
        function.relation is not None and function.relation.id in depends_on(definition)
        for definition in program.definitions.values()
    )
    single = (
        not function.bag
        and not recursive
        and len(main.clauses) == 1
        and inputs_are_key(main.clauses[0])
    )
    return dependencies, single


def columns(declarations: tuple[syntax.Declaration, ...], draft: Draft) -> tuple[Column, ...]:
    """Typed columns; an unnamed one gets the name of its type, with a number if that is taken."""
    made: list[Column] = []
    for declaration in declarations:
        type_ = draft.type(declaration.type, declaration.span)
        name = declaration.name or declaration.type
        taken = {column.name for column in made}
        if name in taken and declaration.name is not None:
            raise TypeFault(
                f"two columns are called {name}",
                code="exists",
                span=declaration.span,
                hint="give each a name of its own",
            )
        number = 2
        base = name
        while name in taken:
            name = f"{base}{number}"
            number += 1
        made.append(Column(name, type_))
    return tuple(made)


def kind_of(node: syntax.CreateFunction, catalog: Catalog) -> FunctionKind:
    match node.body:
        case syntax.StoredBody():
            return FunctionKind.STORED
        case syntax.ForeignBody():
            return FunctionKind.FOREIGN
        case syntax.Query():
            return FunctionKind.DERIVED
        case syntax.ExpressionStatement(expression=syntax.Call() as call, called=called):
            effects = called or any(f.has_effects for f in catalog.overloads(call.function))
            return FunctionKind.PROCEDURE if effects else FunctionKind.DERIVED
        case syntax.ExpressionStatement():
            return FunctionKind.DERIVED
    return FunctionKind.PROCEDURE
