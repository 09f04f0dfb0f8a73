"""The benchmarks at toy sizes: their lines keep the contract, and both ways agree."""

import json
from collections.abc import Iterator
from itertools import chain

import pytest

from harken import bench
from harken.bench import figures, query
from harken.bench.figures import Figure
from harken.bench.report import run_benchmarks

NEEDS = {
    "point-write": "<= 4",
    "point-read": "<= 4",
    "point-read-alone": "<= 4",
    "load": "<= 3",
    "query-join": "<= 1.2",
}


@pytest.fixture(scope="module")
def measured() -> list[Figure]:
    return list(chain.from_iterable(bench.run(name, 300, 1) for name in bench.BENCHMARKS))


def test_every_line_keeps_the_contract(measured: list[Figure]) -> None:
    for line in map(json.loads, (figure.json_line() for figure in measured)):
        assert list(line)[:5] == ["kind", "name", "params", "measure", "value"]
        assert line["kind"] == "bench"
        assert line["params"]["items"] == 300
        assert line["value"] > 0
        assert list(line)[5:] in ([], ["needs", "holds"])
        if "needs" in line:
            bound = float(line["needs"].removeprefix("<= "))
            assert line["holds"] is (line["value"] <= bound)


def test_every_target_is_measured(measured: list[Figure]) -> None:
    assert {figure.name: figure.needs for figure in measured if figure.needs} == NEEDS


def test_ways_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "LOW_STOCK_SQL", query.LOW_STOCK_SQL.replace("<", ">"))
    with pytest.raises(AssertionError, match="disagree"):
        list(bench.run("query", 300, 1))


def test_both_ways_take_turns() -> None:
    order: list[str] = []
    figures.compare(lambda: order.append("ours"), lambda: order.append("theirs"), rounds=3)
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


@pytest.mark.parametrize(("value", "holds"), [(3.9, True), (4.0, True), (4.1, False)])
def test_a_target_holds_or_not(value: float, holds: bool) -> None:
    assert Figure("x", "harken/apsw", value, needs="<= 4").holds is holds


def test_the_table_says_what_misses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def benchmark() -> Iterator[Figure]:
        yield Figure("x", "apsw µs", 2.0, {"items": 1000, "database": "file"})
        yield Figure("x", "harken/apsw", 5.0, {"items": 1000, "database": "file"}, "<= 4")

    monkeypatch.setattr(bench, "BENCHMARKS", {"x": benchmark})
    monkeypatch.setattr("harken.bench.report.BENCHMARKS", {"x": benchmark})
    run_benchmarks([], None, None, as_json=False)
    heading, first, second = capsys.readouterr().out.split("\n")[:3]
    assert heading.strip() == "x (1,000 items, file)"
    assert first.split() == ["apsw", "µs", "2.0"]
    assert second.split() == ["harken/apsw", "5.0", "needs", "<=", "4", "misses"]
