"""Law: facts that are loaded and deleted again leave no trace. A program with input files that hold
more than its facts, from which the surplus is deleted in random batches, ends with the relations of
a plain run, and so does a client that follows the changes, whatever the strategy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import harken
from tests.generators.datalog_programs import Maker, RandomProgram, fact, text_of
from tests.laws.test_recursive_views import small_program

PROGRAMS, AT_ONCE = 15, 5
STRATEGIES = ("external", "materialized", "naive", "auto", "counting")

Row = tuple[int | str, ...]
Facts = dict[str, set[Row]]


def written(path: Path, facts: Facts) -> Path:
    """The facts as files, as `.input` reads them."""
    path.mkdir()
    for name, rows in facts.items():
        lines = ["\t".join(map(str, row)) for row in sorted(rows, key=repr)]
        (path / f"{name}.facts").write_text("".join(f"{line}\n" for line in lines))
    return path


def surplus_of(program: RandomProgram, random: Random) -> list[tuple[str, Row]]:
    maker = Maker(random)
    found = [
        (name, row)
        for name in program.stored
        for row in sorted(maker.rows(program.columns[name], 8), key=repr)
        if row not in program.facts[name]
    ]
    random.shuffle(found)
    return found


def batches(surplus: list[tuple[str, Row]], random: Random) -> list[str]:
    scripts = []
    while surplus:
        size = random.randint(1, 4)
        scripts.append("\n".join(f"-{fact(name, row)}." for name, row in surplus[:size]))
        surplus = surplus[size:]
    return scripts


def output(program: str, facts: Path, found: Path, script: str = "") -> dict[str, str]:
    found.mkdir()
    with harken.connect() as db:
        db.datalog(f"{program}\n{script}", facts=facts, output=found)
    return {each.name: each.read_text() for each in found.iterdir()}


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_what_was_deleted_again_leaves_no_trace(first: int, tmp_path: Path) -> None:
    deleted = 0
    for seed in range(first, first + AT_ONCE):
        program, random = small_program(9_000 + seed)
        surplus = surplus_of(program, random)
        more = {
            name: rows | {row for of, row in surplus if of == name}
            for name, rows in program.facts.items()
        }
        rules = text_of(replace(program, facts={name: set() for name in more}), random)
        rules += "".join(f"\n.input {name}" for name in program.stored)
        shown = "".join(f"\n.output {name}" for name in (*program.stored, *program.derived))
        here = tmp_path / f"{seed}"
        here.mkdir()
        scripts = batches(surplus, random)
        plain = output(f"{rules}{shown}", written(here / "facts", program.facts), here / "plain")
        inputs = written(here / "more", more)
        whole = "\n.commit\n".join(scripts)
        assert output(f"{rules}{shown}", inputs, here / "changed", whole) == plain, rules

        strategy = STRATEGIES[seed % len(STRATEGIES)]
        with harken.connect() as db:
            db.datalog(rules, facts=inputs)
            monitors = {name: db.monitor(name, strategy=strategy) for name in program.derived[-2:]}
            held = {name: set(each.snapshot().plus) for name, each in monitors.items()}
            for script in scripts:
                db.datalog(script)
                deleted += 1
            for name, monitor in monitors.items():
                for change in monitor.changes():
                    held[name] = (held[name] - set(change.minus)) | set(change.plus)
        with harken.connect() as db:
            db.datalog(rules, facts=here / "facts")
            for name, rows in held.items():
                assert rows == set(db.monitor(name).snapshot().plus), f"{rules}\n{strategy} {name}"
    assert deleted > AT_ONCE
