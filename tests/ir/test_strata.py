"""What a relation depends on is in its stratum or in one before, and never its own absence."""

import pytest

from harken.errors import SafetyFault
from harken.ir.clauses import Atom, Clause, Definition, Program
from harken.ir.relations import Column, Kind, Relation
from harken.ir.strata import Stratum, stratify
from harken.ir.terms import Variable
from harken.values.types import INTEGER

X = Variable("X", INTEGER)


def relation(name: str, kind: Kind = Kind.DERIVED) -> Relation:
    return Relation(name, (Column("x", INTEGER),), 0, kind)


def program(**bodies: str) -> Program:
    """`program(p="q !r")`: p(X) ← q(X) ∧ ¬r(X). What has no body is stored; p is the goal."""
    relations = {name: relation(name) for name in bodies}

    def atom(word: str) -> Atom:
        name = word.lstrip("!")
        found = relations.get(name) or relation(name, Kind.STORED)
        return Atom(found, (X,), negated=word.startswith("!"))

    definitions = {
        relations[name].id: Definition(
            relations[name],
            (Clause(Atom(relations[name], (X,)), tuple(map(atom, body.split()))),),
        )
        for name, body in bodies.items()
    }
    return Program(relations["p"], definitions)


def names(strata: tuple[Stratum, ...]) -> list[list[str]]:
    return [sorted(one.relation.name for one in each.definitions) for each in strata]


def test_what_is_needed_comes_first() -> None:
    strata = stratify(program(p="q !r", q="r s", r="t", unused="p"))
    assert names(strata) == [["r"], ["q"], ["p"]]
    assert not any(each.recursive for each in strata)


def test_relations_that_need_each_other_are_one_stratum() -> None:
    strata = stratify(program(p="q", q="r s", r="q"))
    assert names(strata) == [["q", "r"], ["p"]]
    assert [each.recursive for each in strata] == [True, False]


def test_a_relation_must_not_depend_on_its_own_absence() -> None:
    with pytest.raises(SafetyFault) as caught:
        stratify(program(p="s q", q="s !p"))
    assert caught.value.code == "not-stratified"
