"""Production rules as ObjectLog: the relation of their instances, and heads over its columns.

A head that computes, `c(x + 1)`, reads a column of the instances that has the value: the body gets
an equation for it. Variables of the body are columns in the order in which they are written, so the
rows of the relation are the body tuples of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harken.errors import SyntaxFault, TypeFault
from harken.ir import clauses as ir
from harken.ir.productions import PRESENT_NAME, Firing, HeadCall, HeadLiteral, ProductionRule
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.terms import Constant, Term, Variable
from harken.lang.datalog import syntax
from harken.lang.datalog.translate import PRESENT, RuleBody, Translator

MOST_HEADS = 100
"""The most literals in the head of a rule."""


@dataclass(slots=True)
class ProductionTranslator:
    """`is_procedure` says whether a name in a head is that of a procedure."""

    translator: Translator
    is_procedure: Callable[[str], bool]
    needs_facts: bool = False
    """Whether the facts of each instance must be known, for timestamps."""

    def rule(
        self, node: syntax.ProductionRule, number: int, firing: Firing, text: str = ""
    ) -> ProductionRule:
        if len(node.heads) > MOST_HEADS:
            raise SyntaxFault(
                f"a head has at most {MOST_HEADS} literals", code="too-complex", span=node.span
            )
        body = self._named_facts(node.body) if self.needs_facts else node.body
        heads, equations = self._computed(node.heads)
        written = tuple(syntax.direct_variables(() if body is None else syntax.expressions(body)))
        computed = tuple(_fresh_name(number + 1) for number in range(len(equations)))
        whole = _and(body, equations, node)
        stored = tuple(each for each in heads if not self._calls(each))
        bodies = self._bodies(whole, stored, (*written, *computed))
        columns = [bodies[0].variable(name) for name in (*written, *computed)]
        always: tuple[ir.Literal, ...] = ()
        if not columns:  # no engine has tables without columns
            columns = [Variable(PRESENT_NAME, PRESENT.type)]
            always = (ir.Comparison("=", columns[0], PRESENT),)
        relation = Relation(
            f"{node.name} instances",
            tuple(Column(f"c{i}", each.type) for i, each in enumerate(columns)),
            0,
            Kind.DERIVED,
            role=Role.PART,
        )
        clauses = tuple(
            ir.Clause(ir.Atom(relation, tuple(columns)), (*each.literals, *always))
            for each in bodies
        )
        made, calls = self._heads(heads, bodies)
        return ProductionRule(
            name=node.name,
            instances=ir.Definition(relation, clauses),
            auxiliaries=tuple(self.translator.auxiliaries.values()),
            variables=tuple(columns[: len(written)]),
            computed=tuple(columns[len(written) :]),
            heads=made,
            calls=calls,
            firing=firing,
            number=number,
            text=text,
            facts=_facts(bodies, node) if self.needs_facts else None,
        )

    def _calls(self, head: syntax.HeadLiteral) -> bool:
        is_call = self.is_procedure(head.atom.name)
        if is_call and head.deletes:
            raise TypeFault(
                f"{head.atom.name} is a procedure, and `!` deletes facts",
                code="type-mismatch",
                span=head.atom.span,
            )
        return is_call

    def _computed(
        self, heads: Sequence[syntax.HeadLiteral]
    ) -> tuple[tuple[syntax.HeadLiteral, ...], list[syntax.Constraint]]:
        """The heads with a variable for each value that has to be computed, and what it equals. The
        arguments of a procedure have no declared kinds: each is a column."""
        equations: list[syntax.Constraint] = []

        def plain(argument: syntax.Expression, is_call: bool) -> syntax.Expression:
            simple = isinstance(argument, syntax.Named) or (
                isinstance(argument, syntax.Number | syntax.Text) and not is_call
            )
            if simple:
                return argument
            if isinstance(argument, syntax.Unnamed):
                raise SyntaxFault(
                    "`_` has no value that could be used here",
                    span=argument.span,
                    hint="give it a name, and let an atom of the body bind it",
                )
            name = syntax.Named(_fresh_name(len(equations) + 1), argument.span)
            equations.append(syntax.Constraint("=", name, argument, argument.span))
            return name

        made = []
        for head in heads:
            is_call = self._calls(head)
            given = tuple(plain(each, is_call) for each in head.atom.arguments)
            made.append(replace(head, atom=replace(head.atom, arguments=given)))
        return tuple(made), equations

    def _bodies(
        self, body: syntax.Formula, heads: Sequence[syntax.HeadLiteral], names: Sequence[str]
    ) -> list[RuleBody]:
        atoms = tuple(each.atom for each in heads)
        found = self.translator.bodies(atoms, body, names)
        if not found:
            raise SyntaxFault("the body is never true", span=body.span)
        return found

    def _heads(
        self, heads: Sequence[syntax.HeadLiteral], bodies: Sequence[RuleBody]
    ) -> tuple[tuple[HeadLiteral, ...], tuple[HeadCall, ...]]:
        made, calls = [], []
        for head in heads:
            atom = head.atom
            if self._calls(head):
                terms = tuple(bodies[0].term(each) for each in atom.arguments)
                calls.append(HeadCall(atom.name, terms, atom.span))
                continue
            relation, terms = bodies[0].head(atom)
            made.append(HeadLiteral(relation, terms, head.deletes, atom.span))
        return tuple(made), tuple(calls)

    def _named_facts(self, body: syntax.Formula | None) -> syntax.Formula | None:
        """The body with a name for each `_` of a positive atom: timestamps tell facts apart."""
        if body is None:
            return None
        names = iter(range(1, 10**6))

        def named(atom: syntax.Atom) -> syntax.Atom:
            given = tuple(
                syntax.Named(f"any#{next(names)}", each.span)
                if isinstance(each, syntax.Unnamed)
                else each
                for each in atom.arguments
            )
            return replace(atom, arguments=given)

        def inside(formula: syntax.Formula) -> syntax.Formula:
            match formula:
                case syntax.Atom():
                    return named(formula)
                case syntax.And():
                    return replace(formula, parts=tuple(map(inside, formula.parts)))
            return formula

        return inside(body)


def _fresh_name(number: int) -> str:
    """A variable that no text can have."""
    return f"head#{number}"


def _and(
    body: syntax.Formula | None, equations: Sequence[syntax.Constraint], node: syntax.ProductionRule
) -> syntax.Formula:
    held = syntax.Truth(True, node.span) if body is None else body
    return syntax.And((held, *equations), node.span) if equations else held


def _facts(
    bodies: Sequence[RuleBody], node: syntax.ProductionRule
) -> tuple[tuple[Relation, tuple[Term, ...]], ...]:
    if len(bodies) > 1:
        raise SyntaxFault(
            "a rule over timestamped facts has no disjunction",
            code="unsupported",
            span=node.span,
            hint="write a rule for each alternative",
        )
    return tuple(
        (each.relation, each.terms)
        for each in bodies[0].literals
        if isinstance(each, ir.Atom)
        and not each.negated
        and each.relation.kind is Kind.STORED
        and all(isinstance(term, Variable | Constant) for term in each.terms)
    )
