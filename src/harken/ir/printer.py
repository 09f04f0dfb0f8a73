"""ObjectLog as text, written the way the papers write it.

threshold_item,integer(I, T) ←
  consume_freq_item,integer(I, _G1) ∧
  ...
  T = _G4 + _G5
"""

from __future__ import annotations

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
)
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Relation, is_extent


def print_program(program: Program) -> str:
    """Every definition, the goal first."""
    goal = program.definitions.get(program.goal.id)
    others = [d for name, d in program.definitions.items() if name != program.goal.id]
    return "\n\n".join(print_definition(d) for d in ([goal] if goal else []) + others)


def print_definition(definition: Definition) -> str:
    if not definition.clauses:
        return f"{definition.relation.signature} has no clause"
    return "\n\n".join(print_clause(clause) for clause in definition.clauses)


def print_clause(clause: Clause) -> str:
    head = print_atom(clause.head)
    if not clause.body:
        return head
    return f"{head} ←\n  " + " ∧\n  ".join(print_literal(literal) for literal in clause.body)


def print_literal(literal: Literal) -> str:
    match literal:
        case Atom():
            return print_atom(literal)
        case Comparison():
            return f"{literal.left} {literal.operator} {literal.right}"
        case Computation():
            return f"{literal.result} = {_operation(literal)}"
        case Aggregation():
            values = ", ".join(map(str, (literal.value, *literal.others)))
            value = f"{values} : " if literal.value is not None else ""
            return f"{literal.result} = {literal.aggregate}({value}{print_atom(literal.atom)})"


def print_atom(atom: Atom) -> str:
    terms = ", ".join(str(term) for term in atom.terms)
    return f"{'¬' if atom.negated else ''}{_adorned(atom.relation)}({terms})"


def _adorned(relation: Relation) -> str:
    """A type's extent is written as the type itself: `item(I)`."""
    return relation.columns[0].type.name if is_extent(relation) else relation.signature


def _operation(literal: Computation) -> str:
    arguments = [str(term) for term in literal.arguments]
    symbol = OPERATIONS[literal.operation].symbol
    if symbol is not None and len(arguments) == 2:
        return f"{arguments[0]} {symbol} {arguments[1]}"
    if literal.operation == "negate":
        return f"-{arguments[0]}"
    return f"{literal.operation}({', '.join(arguments)})"
