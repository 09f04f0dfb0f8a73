"""Random programs of production rules: as text for Harken, and as rules of the reference model."""

from __future__ import annotations

from dataclasses import dataclass
from operator import eq, lt, ne
from random import Random
from typing import Any

from tests.models.productions import Fact, Lit, Program, Rule, Test, Var, closure

ARITY = {"a": 1, "b": 2, "c": 2, "d": 1, "e": 2}
VALUES = range(3)
DECLARATIONS = "\n".join(
    f".decl {name}({', '.join(f'x{i}: number' for i in range(arity))})"
    for name, arity in ARITY.items()
)
TESTS = {"<": lt, "!=": ne, "=": eq}


@dataclass(frozen=True)
class RandomProgram:
    text: str
    """Its rules and directives, without declarations and facts."""
    program: Program
    facts: frozenset[Fact]


def random_program(chance: Random) -> RandomProgram:
    number = chance.randint(1, 5)
    semantics = chance.choice(["set", "instance", "mixed"])
    rules = [_rule(f"r{i}", chance, semantics) for i in range(1, number + 1)]
    pairs = _priorities([each.name for each in rules], chance)
    lines = [_text(each) for each in rules]
    lines += [f".priority {one} > {other}" for one, other in sorted(pairs)]
    chance.shuffle(lines)
    in_order = sorted(rules, key=lambda rule: lines.index(_text(rule)))
    facts = {
        (name, tuple(chance.choice(VALUES) for _ in range(arity)))
        for name, arity in ARITY.items()
        for _ in range(chance.randint(0, 4))
    }
    program = Program(tuple(in_order), closure(pairs))
    return RandomProgram("\n".join(lines), program, frozenset(facts))


def _rule(name: str, chance: Random, semantics: str) -> Rule:
    positive = [_literal(chance, chance.choice(list(ARITY)), _term) for _ in range(_few(chance))]
    bound = [t for each in positive for t in each.terms if isinstance(t, Var)]

    def known(chance: Random) -> Any:
        return chance.choice(bound) if bound and chance.random() < 0.8 else chance.choice(VALUES)

    negative = [
        _literal(chance, chance.choice(list(ARITY)), known, positive=False)
        for _ in range(chance.choice([0, 0, 1, 1, 2]))
    ]
    tests = []
    if bound and chance.random() < 0.3:
        sign = chance.choice(list(TESTS))
        tests.append(Test((chance.choice(bound), known(chance)), TESTS[sign]))
    head = [
        _literal(chance, chance.choice(list(ARITY)), known, positive=chance.random() < 0.6)
        for _ in range(_few(chance))
    ]
    body: list[Lit | Test] = [*positive, *negative, *tests]
    chance.shuffle(body)
    by_instance = semantics == "instance" or (semantics == "mixed" and chance.random() < 0.5)
    return Rule(name, tuple(body), tuple(head), by_instance)


def _few(chance: Random) -> int:
    return chance.choice([1, 1, 2, 2, 3])


def _literal(chance: Random, name: str, term: Any, *, positive: bool = True) -> Lit:
    return Lit(name, tuple(term(chance) for _ in range(ARITY[name])), positive)


def _term(chance: Random) -> Any:
    return Var(chance.choice("xyz")) if chance.random() < 0.85 else chance.choice(VALUES)


def _priorities(names: list[str], chance: Random) -> set[tuple[str, str]]:
    order = chance.sample(names, len(names))
    return {
        (one, other)
        for i, one in enumerate(order)
        for other in order[i + 1 :]
        if chance.random() < 0.3
    }


def _text(rule: Rule) -> str:
    body = ", ".join(map(_written, rule.body))
    head = ", ".join(map(_written, rule.head))
    semantics = "instance" if rule.instance_oriented else "set"
    return f"rule {rule.name} [{semantics}]: {body} -> {head}."


def _written(literal: Lit | Test) -> str:
    terms = [each.name if isinstance(each, Var) else str(each) for each in literal.terms]
    if isinstance(literal, Test):
        sign = next(sign for sign, holds in TESTS.items() if holds is literal.holds)
        return f"{terms[0]} {sign} {terms[1]}"
    return f"{'' if literal.positive else '!'}{literal.predicate}({', '.join(terms)})"
