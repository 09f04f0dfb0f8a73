"""WITH RECURSIVE: an item that mentions itself is a recursive relation, as in Datalog.

    WITH RECURSIVE r AS (SELECT … FROM a UNION SELECT … FROM r, b)

    r(X) ← a(X)        r(Y) ← r(X) ∧ b(Y)

It is a set: the rows that the parts give, each once. UNION ALL would count derivations, of which a
graph with a cycle has infinitely many, and is refused.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from harken.errors import TypeFault
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.lang.sql.rows import Rows
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation


def mentions(node: exp.Expr, name: str) -> bool:
    return any(
        not each.db and each.name.lower() == name.lower() for each in node.find_all(exp.Table)
    )


class Recursion(Translation):
    def _recursive(self, item: exp.Expr, scope: Scope | None) -> None:
        parts = list(self._parts(item.this))
        base = [each for each in parts if not mentions(each, item.alias)]
        if not base:
            raise TypeFault(
                f"{item.alias} has no part that it begins with",
                code="unsafe",
                span=self._draft.place(item),
                hint="one part of the UNION must not mention it",
            )
        first = [self.query(each, scope) for each in base]
        names = tuple(c.name for c in item.args["alias"].columns) or first[0].names
        nullable = [any(rows.columns[i].type.nullable for rows in first) for i in range(len(names))]
        relation = self._relation(first[0], nullable)
        found = self._with[-1]
        found[item.alias.lower()] = Rows(relation, (), names)
        steps = [each for each in parts if each not in base]
        taken = dict(self._draft.definitions)
        rows = [self.query(each, scope) for each in steps]
        wider = [
            null or any(each.columns[i].type.nullable for each in rows)
            for i, null in enumerate(nullable)
        ]
        if wider != nullable:  # what the steps give may be NULL: read them again so
            self._draft.definitions.clear()
            self._draft.definitions.update(taken)
            relation = self._relation(first[0], wider)
            found[item.alias.lower()] = Rows(relation, (), names)
            rows = [self.query(each, scope) for each in steps]
        clauses = [
            clause for each in (*first, *rows) for clause in self._clauses(each, relation, item)
        ]
        self._draft.definitions[relation.id] = Definition(relation, tuple(clauses))

    def _parts(self, node: exp.Expr) -> list[exp.Expr]:
        node = node.unnest() if isinstance(node, exp.Subquery | exp.Paren) else node
        if not isinstance(node, exp.Union):
            return [node]
        if not node.args.get("distinct"):
            error = self._not_yet(node, "UNION ALL in WITH RECURSIVE is not there")
            error.hint = "write UNION: each row once"
            raise error
        return [*self._parts(node.this), *self._parts(node.expression)]

    def _relation(self, rows: Rows, nullable: list[bool]) -> Relation:
        columns = tuple(
            Column(column.name, column.type.or_null(null))
            for column, null in zip(rows.columns, nullable, strict=True)
        )
        made = self._draft.define("recursive", (), columns, (), bag=False)
        return replace(made, kind=Kind.DERIVED, semantics=Semantics.SET)

    def _clauses(self, rows: Rows, relation: Relation, item: exp.Expr) -> list[Clause]:
        """What a part of the UNION gives, as clauses of the whole."""
        if rows.captured:
            raise self._not_yet(item, "WITH RECURSIVE that mentions the query around it")
        types = [column.type.name for column in rows.columns]
        wanted = [column.type.name for column in relation.columns]
        if types != wanted:
            raise TypeFault(
                f"the parts of {item.alias} are of types ({', '.join(wanted)}) and "
                f"({', '.join(types)})",
                code="type-mismatch",
                span=self._draft.place(item),
                hint="CAST them to the same",
            )
        definition = self._draft.definitions[rows.relation.id]
        if definition.first or definition.numbered or definition.groups:
            variables = tuple(self._draft.fresh(column.type) for column in rows.columns)
            return [Clause(Atom(relation, variables), (Atom(rows.relation, variables),))]
        return [Clause(Atom(relation, each.head.terms), each.body) for each in definition.clauses]
