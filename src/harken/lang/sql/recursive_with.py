"""WITH RECURSIVE: an item that mentions itself is a recursive relation, as in Datalog.

    WITH RECURSIVE r AS (SELECT … FROM a UNION SELECT … FROM r, b)

    r(X) ← a(X)        r(Y) ← r(X) ∧ b(Y)

With UNION it is a set. With UNION ALL it is a bag that is computed in rounds: each round derives
from the rows of the round before, and a row counts as often as it is derived. A query that treats
each row on its own need not know the rounds. One that compares the rows of a round, or chooses
among them, is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from harken.errors import TypeFault, counted
from harken.ir.clauses import Atom, Clause, Definition, Program, atoms
from harken.ir.relations import Column, Relation, Role
from harken.ir.strata import components
from harken.lang.sql.program_draft import Draft
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation


def mentions(node: exp.Expr, name: str) -> bool:
    return any(
        not each.db and each.name.lower() == name.lower() for each in node.find_all(exp.Table)
    )


def _plain(node: exp.Expr) -> exp.Expr:
    return node.unnest() if isinstance(node, exp.Subquery | exp.Paren) else node


def _is_all(node: exp.Expr) -> bool:
    node = _plain(node)
    return isinstance(node, exp.Union) and not node.args.get("distinct")


def define_recursive(translation: Translation, item: exp.Expr, scope: Scope | None) -> None:
    in_rounds = _is_all(item.this)
    parts = _parts(item.this, in_rounds)
    base = [each for each in parts if not mentions(each, item.alias)]
    if not base:
        raise TypeFault(
            f"{item.alias} has no part that is not recursive",
            code="unsafe",
            span=translation.draft.place(item),
            hint="one part of the UNION must not mention it",
        )
    first = [translation.query(each, scope) for each in base]
    names = tuple(c.name for c in item.args["alias"].columns) or first[0].names
    refuse_other_widths(translation.draft, item, first, len(names))
    nullable = [any(rows.columns[i].type.nullable for rows in first) for i in range(len(names))]
    relation = _relation(translation.draft, item, first[0], nullable, in_rounds)
    found = translation.with_items[-1]
    found[item.alias.lower()] = QueryRows(relation, (), names)
    steps = [each for each in parts if each not in base]
    taken = dict(translation.draft.definitions)
    rows = [translation.query(each, scope) for each in steps]
    refuse_other_widths(translation.draft, item, rows, len(names))
    wider = [
        null or any(each.columns[i].type.nullable for each in rows)
        for i, null in enumerate(nullable)
    ]
    if wider != nullable:  # a step may return NULL: translate the steps again with nullable columns
        translation.draft.definitions.clear()
        translation.draft.definitions.update(taken)
        relation = _relation(translation.draft, item, first[0], wider, in_rounds)
        found[item.alias.lower()] = QueryRows(relation, (), names)
        rows = [translation.query(each, scope) for each in steps]
    clauses = [
        clause
        for each in (*first, *rows)
        for clause in _clauses(translation.draft, each, relation, item)
    ]
    translation.draft.definitions[relation.id] = Definition(relation, tuple(clauses))
    if in_rounds:
        _refuse_whole_rounds(translation.draft, item, relation)


def _parts(node: exp.Expr, in_rounds: bool) -> list[exp.Expr]:
    """The parts of a UNION. Each row is there once, so inside of it ALL means nothing; inside
    of UNION ALL a UNION means something, and is a part."""
    node = _plain(node)
    if not isinstance(node, exp.Union) or (in_rounds and not _is_all(node)):
        return [node]
    sides = (node.this, node.expression)
    return [part for side in sides for part in _parts(side, in_rounds)]


def _refuse_whole_rounds(draft: Draft, item: exp.Expr, relation: Relation) -> None:
    """Reject a recursive part that compares the rows of a round, or chooses among them."""
    strata = components(Program(relation, draft.definitions))
    cycle = next(each for each in strata if relation.id in each.names)
    for definition in cycle.definitions:
        chooses = definition.groups or definition.first or definition.numbered
        twice = any(
            sum(1 for each in atoms(clause.body) if each.relation.id in cycle.names) > 1
            for clause in definition.clauses
        )
        if twice or chooses or definition.relation.is_set:
            error = draft.unsupported(
                item,
                f"the recursive part of {item.alias} compares rows of a round, or chooses "
                "among them",
            )
            error.hint = (
                f"with UNION ALL it may mention {item.alias} once, in FROM, and have no "
                "DISTINCT, GROUP BY or LIMIT; UNION may do more"
            )
            raise error


def refuse_other_widths(
    draft: Draft, item: exp.Expr, parts: Sequence[QueryRows], width: int
) -> None:
    for each in parts:
        if len(each.columns) != width:
            raise TypeFault(
                f"the query of {item.alias} has {counted(len(each.columns), 'column')}, "
                f"and not {width}",
                code="arity",
                span=draft.place(item),
            )


def _relation(
    draft: Draft, item: exp.Expr, rows: QueryRows, nullable: list[bool], in_rounds: bool
) -> Relation:
    columns = tuple(
        Column(column.name, column.type.or_null(null))
        for column, null in zip(rows.columns, nullable, strict=True)
    )
    made = draft.define(
        "recursive", (), columns, (), bag=in_rounds, role=Role.RECURSIVE, of=item.alias
    )
    return replace(made, in_rounds=in_rounds)


def _clauses(draft: Draft, rows: QueryRows, relation: Relation, item: exp.Expr) -> list[Clause]:
    """The rows of one part of the UNION, as clauses of the recursive relation."""
    if rows.captured:
        raise draft.unsupported(item, "WITH RECURSIVE cannot use columns of the enclosing query")
    types = [column.type.name for column in rows.columns]
    wanted = [column.type.name for column in relation.columns]
    if types != wanted:
        raise TypeFault(
            f"the parts of {item.alias} are of types ({', '.join(wanted)}) and "
            f"({', '.join(types)})",
            code="type-mismatch",
            span=draft.place(item),
            hint="CAST them to the same",
        )
    definition = draft.definitions[rows.relation.id]
    chooses = definition.first or definition.numbered or definition.groups
    if chooses or (relation.in_rounds and definition.relation.is_set):
        variables = tuple(draft.fresh(column.type) for column in rows.columns)
        return [Clause(Atom(relation, variables), (Atom(rows.relation, variables),))]
    return [Clause(Atom(relation, each.head.terms), each.body) for each in definition.clauses]
