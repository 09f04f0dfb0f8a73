"""Law: a program of production rules has the firings and the states of its definition.

Random programs, set- and instance-oriented, with negation and priorities, run in one database that
gets other facts each time, and in the interpreter of section 2 (`tests/models/productions.py`).
What is stored for them is chosen by one policy after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

import harken
from harken import Database, HarkenError
from harken.maintenance.materialisation import AUTO, POLICIES
from tests.generators.production_programs import (
    ARITY,
    DECLARATIONS,
    RandomProgram,
    random_program,
)
from tests.models.productions import Outcome, State, run

LIMIT = 30


def state_of(db: Database) -> State:
    return frozenset(
        (name, tuple(row)) for name in ARITY for row in db.sql(f"SELECT * FROM {name}").rows
    )


def stated(program: RandomProgram) -> str:
    return "\n".join(f"{name}({', '.join(map(str, row))})." for name, row in sorted(program.facts))


def fired(lines: list[str]) -> list[str]:
    return [line.partition(": fires ")[2] for line in lines if ": fires " in line]


def expected_firings(program: RandomProgram, outcome: Outcome) -> list[str]:
    named = {rule.name: rule for rule in program.program.rules}
    found = []
    for name, values in outcome.firings:
        pairs = zip(named[name].variables, values or (), strict=values is not None)
        shown = ", ".join(f"{variable}={value!r}" for variable, value in pairs)
        found.append(name if values is None else f"{name}({shown})")
    return found


def check(db: Database, seed: int, policy: str) -> None:
    given = random_program(Random(seed))
    outcome = run(given.program, given.facts, LIMIT)
    for name in ARITY:
        db.sql(f"DELETE FROM {name}")
    program = db.program(f"{stated(given)}\n{given.text}")
    lines: list[str] = []
    where = f"{policy}, seed {seed}\n{stated(given)}\n{given.text}"
    try:
        found = program.run(limit=LIMIT, trace=True, materialise=policy)
    except HarkenError as error:
        assert error.code == "no-fixpoint", where
        assert not outcome.settled, where
        assert state_of(db) == given.facts, f"{where}\nnot rolled back"
        return
    lines = list(found.trace)
    assert outcome.settled, where
    assert fired(lines) == expected_firings(given, outcome), where
    assert state_of(db) == outcome.state, where


def check_all(seeds: range, policies: Sequence[str] = (*POLICIES, AUTO)) -> None:
    with harken.connect() as db:
        db.datalog(DECLARATIONS)
        for seed in seeds:
            check(db, seed, policies[seed % len(policies)])


def test_programs_fire_as_they_are_defined() -> None:
    check_all(range(70))


@pytest.mark.nightly
def test_many_programs_fire_as_they_are_defined() -> None:
    for first in range(1000, 51_000, 1000):
        check_all(range(first, first + 1000))


@pytest.mark.nightly
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_the_same_firings(policy: str) -> None:
    check_all(range(2_000), [policy])
