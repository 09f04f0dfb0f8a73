"""The benchmark of production rules runs, small, and its programs settle under every policy."""

import pytest

import harken
from harken.bench.production_systems import figures
from harken.bench.rule_workloads import WORKLOADS, Workload
from harken.maintenance.materialisation import POLICIES

SMALL = 6


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_every_policy_makes_the_same_firings(workload: Workload) -> None:
    facts = workload.facts(SMALL)
    found = set()
    for policy in (POLICIES[0], POLICIES[-1]):
        with harken.connect() as db:
            program = db.program(workload.text)
            for relation, rows in facts.items():
                db.insert(relation, sorted(set(rows)))
            run = program.run(materialise=policy, limit=500)
            found.add((run.firings, tuple(sorted(run.by_rule.items()))))
    assert len(found) == 1


@pytest.mark.nightly
def test_the_benchmark_prints_its_figures() -> None:
    measured = [each.measure for each in figures(SMALL, rounds=1)]
    assert {"cosma/better of rete and treat", "stored rows, cosma/rete"} <= set(measured)
