"""The benchmarks at toy sizes: their lines keep the contract, and both ways agree."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from harken import bench
from harken.bench import (
    beside,
    calculated,
    closure,
    closure_lake,
    contestants,
    counting,
    figures,
    from_scratch,
    inventory_by_hand,
    monitoring,
    plot,
    query,
    serving,
    sources,
    sql_lake,
    sql_sweep,
    statements,
    tpch,
    waves,
)
from harken.bench.figures import Figure
from harken.bench.report import run_benchmarks
from harken.bench.shop import ALL_TOGETHER, Shop, Timing
from harken.bench.tpch import lakehouse
from harken.bench.warehouse import CONDITIONS
from harken.engines import fetch_limits as limits
from harken.errors import HarkenError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("little_garbage")

NEEDS = {
    ("point-write", "<= 4"),
    ("point-read", "<= 4"),
    ("point-read-alone", "<= 4"),
    ("load", "<= 3"),
    ("query-join", "<= 1.2"),
    ("inventory-by-hand", "<= 5"),
    *((f"inventory-{number}", "<= 1.5") for number in (1, 2, 3)),
    *((f"inventory-{number}", "<= 1.15") for number in (4, 5, 6, 7)),
    ("many-rules", "<= 1.2"),
    ("many-activations", "<= 1.2"),
    ("subscribers", "<= 1.2"),
    ("cq", "<= 1.5"),
}
SIZES = {"inventory": [100, 200], "many-rules": [12], "subscribers": [12], "cq": [10, 20]}


@pytest.fixture(scope="module")
def measured(little_garbage: None) -> list[Figure]:
    resident = [
        name
        for name in bench.BENCHMARKS
        if name
        not in (
            "lake",
            "sql",
            "closure",
            "counting",
            "waves",
            "statements",
            "serve",
            "sources",
            "programs",
        )
    ]
    runs = (bench.run(name, SIZES.get(name, [300]), 1) for name in resident)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitoring, "ITEMS_IN_A_TURN", 5)
        return list(chain.from_iterable(runs))


def test_every_line_keeps_the_contract(measured: list[Figure]) -> None:
    for line in map(json.loads, (figure.json_line() for figure in measured)):
        assert list(line)[:5] == ["kind", "name", "params", "measure", "value"]
        assert line["kind"] == "bench"
        assert {"items", "rules", "activations", "subscribers", "queries"} & set(line["params"])
        assert line["value"] > 0
        assert list(line)[5:] in ([], ["needs", "holds"])
        if "needs" in line:
            bound = float(line["needs"].removeprefix("<= "))
            assert line["holds"] is (line["value"] <= bound)


def test_every_target_is_measured(measured: list[Figure]) -> None:
    assert {(figure.name, figure.needs) for figure in measured if figure.needs} == NEEDS


def test_sources_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TRANSACTIONS", 20), ("SOURCES", 2), ("LOOKS", 2), ("PAGES", 2)):
        monkeypatch.setattr(sources, name, value)
    found = {(each.measure, each.needs) for each in bench.run("sources", [300], 1)}
    pages = {("pages, one changed s", None), ("pages, none changed s", None)}
    assert found >= pages
    assert found - pages in (
        set(),  # without PostgreSQL
        {
            ("first load s", None),
            ("first load/COPY into SQLite", "<= 2"),
            ("poll s", None),
            ("poll/read", "<= 1.5"),
            ("transactions/s", ">= 300"),
            ("median delay ms", None),
            ("idle % of a core", "<= 2"),
        },
    )


def test_small_transactions_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way has the same views in the end, or it fails."""
    for name, value in (("UPDATES", 5), ("BESIDE", (1,)), ("GROUPED", (1, 2)), ("SHOPS", 7)):
        monkeypatch.setattr(waves, name, value)
    found = {(each.name, each.measure, each.needs) for each in bench.run("waves", [50], 1)}
    assert ("waves", "fast/by hand", "<= 4") in found
    assert ("waves", "text/by hand", "<= 6") in found
    assert ("waves-writers", "two/one", "<= 2") in found
    assert ("waves-beside", "with/without", "<= 1.1") in found
    assert ("waves-grouped", "a view/of 1", "<= 1.1") in found


def test_single_statements_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL takes part where the machine has it."""
    monkeypatch.setattr(statements, "TURN", 5)
    found = {(each.name, each.measure) for each in bench.run("statements", [50], 1)}
    kinds = ("update", "insert", "select", "delete")
    assert {(f"statements-{kind}", "harken/sqlite") for kind in kinds} <= found


def test_two_installations_take_turns_at_a_toy_size() -> None:
    found = list(beside.figures(sys.executable, rounds=2, items=150, rules=3))
    assert [each.name for each in found[::3]] == [f"beside-{name}" for name in beside.WORK]
    assert {each.needs for each in found} == {None, "<= 1.05"}
    assert all(each.value > 0 for each in found)


def test_a_service_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUESTS", 16)
    found = {
        (each.name, each.measure, each.params["clients"]): each.value
        for each in bench.run("serve", [50], 1)
    }
    kinds, clients = ("serve-transactions", "serve-sql"), (1, 8)
    measures = ("harken/s", "echo/s", "harken/echo")
    assert set(found) == {(k, m, n) for k in kinds for m in measures for n in clients}
    assert min(found.values()) > 0


@pytest.mark.nightly  # it starts a Spark of its own
@pytest.mark.timeout(600)
def test_the_lake_at_a_toy_size() -> None:
    found = list(bench.run("lake", [300, 600], 1))
    needs = {(figure.name, figure.needs) for figure in found if figure.needs}
    assert ("lake-inventory", "<= 1.5") in needs
    assert ("lake-parts", "<= 1.2") in needs


@pytest.mark.nightly  # it starts a Spark of its own
@pytest.mark.timeout(600)
def test_the_queries_of_tpch_in_the_lake_at_a_toy_size() -> None:
    chosen = {"scales": [0.001], "queries": ["q01", "q02", "q03"], "changes": [0.01]}
    found = list(bench.run("sql-lake", rounds=1, tpch=chosen))
    measured = {(figure.params["query"], figure.measure) for figure in found}
    assert {("q02", "harken/Spark"), ("no view", "lake ms"), ("all", "Spark/harken")} <= measured


@pytest.mark.nightly  # it starts a Spark of its own
@pytest.mark.timeout(600)
def test_what_another_program_writes_is_swept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn has the whole change before it, and in the end nothing has changed."""
    monkeypatch.setattr(sql_sweep, "MOST_APPLIED", 0)
    monkeypatch.setattr(limits, "MOST_HELD", 100)
    seen: list[int] = []
    process_inputs = lakehouse.process_inputs

    def counted(*given: Any) -> Any:
        step, written = process_inputs(*given)
        seen.append(step.taken["lineitem"])
        return step, written

    monkeypatch.setattr(lakehouse, "process_inputs", counted)
    with sql_lake.lakehouse(0.001) as (lake, refresh):
        sweep = sql_sweep.Sweep("sql-lake-sweep", lake, refresh, 1, time.perf_counter)
        count = "SELECT count(*), sum(o_custkey), max(o_orderkey) FROM orders"
        found = list(sweep.figures(0.001, ["q04", "q12"], [0.5]))
        before = lake.db.sql(count).rows
        lake.db.step()
        assert lake.db.sql(count).rows == before
    assert len(seen) > 10
    assert min(seen) > 5_000
    assert [figure.needs for figure in found] == [None, None, None, "<= 1.2"] * 2


def test_the_queries_of_tpch_at_a_toy_size() -> None:
    chosen = {"scales": [0.001], "queries": ["q01", "q03", "q11"], "changes": [0.01]}
    found = list(bench.run("sql", rounds=1, tpch=chosen))
    measured = {(figure.params["query"], figure.measure) for figure in found}
    assert {("q03", "by hand ms"), ("q11", "SQLite/harken"), ("all", "SQLite/harken")} <= measured
    sweep = list(bench.run("sql-sweep", rounds=1, tpch={**chosen, "queries": ["q01"]}))
    assert [figure.needs for figure in sweep] == [None, None, None, "<= 1.2"]
    ElementTree.fromstring(plot.draw([*found, *sweep]))


def test_programs_that_calculate(monkeypatch: pytest.MonkeyPatch) -> None:
    """All strategies tell the same of a program, or there is no figure."""
    monkeypatch.setattr(contestants, "LEARNING", 4)
    monkeypatch.setattr(calculated, "MOST", 1)
    programs = [each for each in calculated.calculations() if each.name in ("any", "largest")]
    found = list(calculated.figures(1, programs))
    assert {(each.measure, each.needs) for each in found if each.needs} == {
        ("auto/best", "<= 1.5"),
        ("worst/best", "<= 20"),
    }


@pytest.mark.parametrize("name", [each.name for each in from_scratch.RECURSIONS])
def test_recursions_from_scratch(name: str) -> None:
    edges = sorted(from_scratch.small_parts(40, Random(1)))
    found = list(from_scratch.figures([(name, "small parts", edges)]))
    assert [each.measure for each in found] == ["harken ms", "harken/Python", "harken/DuckDB"]


def test_recursive_views_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """All strategies tell the same of every view and graph, or there is no figure."""
    monkeypatch.setattr(closure, "WARMING", 4)
    monkeypatch.setattr(contestants, "LEARNING", 4)
    monkeypatch.setattr(closure, "MOST", 3)
    monkeypatch.setattr(closure, "BATCH", 3)
    monkeypatch.setattr(closure, "REQUIRED_FROM", 30)
    graphs = [each for each in closure.GRAPHS if each.name in ("random", "power-law")]
    found = list(closure.figures([30], 1, graphs=graphs))
    assert {each.params["view"] for each in found} == {each.name for each in closure.PROGRAMS}
    needs = {(each.measure, each.needs) for each in found if each.needs}
    assert needs == {
        ("naive/external", ">= 100"),
        ("external/materialized bytes", "<= 0.01"),
        ("auto/best", "<= 1.3"),
    }
    assert all(each.value == 0 for each in found if each.measure == "external bytes")
    made = {each.name: each.make(60, Random(1)) for each in closure.GRAPHS}
    assert all(50 <= len(edges) <= 80 for edges in made.values())


def test_counting_at_a_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """All strategies tell the same, or there is no figure."""
    monkeypatch.setattr(counting, "WARMING", 4)
    found = list(counting.figures([200], 2))
    assert {each.name for each in found} == {f"counting, {e.name}" for e in counting.VIEWS}
    assert {"external/counting", "naive/counting", "auto/best"} <= {e.measure for e in found}


def test_recursive_views_in_the_lake_at_a_toy_size(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closure_lake, "_session", lambda _: spark)
    found = list(bench.run("closure-lake", [60], 1))
    measured = {(each.params["graph"], each.measure) for each in found}
    assert {("tree", "external ms"), ("power-law", "naive/auto")} <= measured


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(HarkenError, match="tpchgen-cli") as caught:
        tpch.generated(0.5)
    assert caught.value.hint == "/nowhere/python -m pip install tpchgen-cli"


def test_ways_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "LOW_STOCK_SQL", query.LOW_STOCK_SQL.replace("<", ">"))
    with pytest.raises(AssertionError, match="disagree"):
        list(bench.run("query", [300], 1))


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
    run_benchmarks([], [], None, as_json=False)
    heading, first, second = capsys.readouterr().out.split("\n")[:3]
    assert heading.strip() == "x (1,000 items, file)"
    assert first.split() == ["apsw", "µs", "2.0"]
    assert second.split() == ["harken/apsw", "5.0", "needs", "<=", "4", "misses"]


# --- the inventory -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    shop = Shop(200)
    yield shop
    shop.db.close()


@pytest.mark.parametrize("strategy", monitoring.STRATEGIES)
def test_a_turn_orders_each_low_item_once_and_ends_where_it_began(
    shop: Shop, strategy: str
) -> None:
    shop.turn(("quantity", "delivery_time"), strategy, ALL_TOGETHER)
    assert shop.orders == 2  # items 0 and 100
    quantity = shop.db.function("quantity")
    assert [quantity[item] for item in shop.items] == shop.quantities


def test_a_turn_that_misses_an_order_fails(shop: Shop) -> None:
    shop.db.amosql("deactivate monitor_all_items(); commit;")
    try:
        with pytest.raises(AssertionError, match="0 orders for 1 items"):
            shop.turn(("quantity",), "incremental", [slice(0, 1)])
    finally:
        shop.db.amosql("activate monitor_all_items(); commit;")


def test_by_hand_only_the_changes_are_scanned(shop: Shop) -> None:
    plain = inventory_by_hand.ByHand(shop.items, shop.suppliers, shop.order)
    for sql in (inventory_by_hand.GAINED, inventory_by_hand.LOST):
        plan = plain.connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        first, *others = (str(step) for *_, step in plan)
        assert first == "SCAN d"
        assert len(others) == 4
        assert all(step.startswith("SEARCH") for step in others)
    plain.close()


def turns(**seconds: list[float]) -> monitoring.Turns:
    return {name: [Timing(each, each) for each in times] for name, times in seconds.items()}


def test_the_targets_of_a_small_change() -> None:
    taken = {
        1_000: turns(incremental=[1.0, 1.0, 9.0], naive=[2.0] * 3, adaptive=[1.0] * 3),
        1_000_000: turns(incremental=[1.2, 1.2, 1.2], naive=[6000.0] * 3, adaptive=[1.2] * 3),
    }
    found = list(monitoring.figures_of(monitoring.BENCHMARKS[0], taken))
    targets = [
        (figure.params["items"], figure.measure, figure.value, figure.needs, figure.holds)
        for figure in found
        if figure.needs
    ]
    assert targets == [
        (1_000_000, "naive/incremental", 5000.0, ">= 3000", True),
        (1_000_000, "largest/smallest", 1.2, "<= 1.5", True),
    ]


def test_adaptive_is_measured_by_the_better_of_the_others() -> None:
    taken = {1_000: turns(incremental=[4.0], naive=[2.0], adaptive=[3.0])}
    *_, last = monitoring.figures_of(monitoring.BENCHMARKS[3], taken)
    assert (last.measure, last.value, last.holds) == ("adaptive/better", 1.5, False)


def test_sizes_stand_below_each_other(
    measured: list[Figure],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    of_inventory = [figure for figure in measured if figure.name.startswith("inventory")]
    monkeypatch.setattr(bench, "BENCHMARKS", {"inventory": lambda: iter(of_inventory)})
    picture = tmp_path / "inventory.svg"
    run_benchmarks(["inventory"], [], None, as_json=False, picture=picture)
    output = capsys.readouterr().out
    table = output[output.index("inventory-1") : output.index("inventory-2")]
    assert [line.split()[0] for line in table.splitlines()[3:5]] == ["100", "200"]
    assert "200 items: largest/smallest" in table
    svg = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    names = {"svg": "http://www.w3.org/2000/svg"}
    assert len(svg.findall("svg:g", names)) == 7
    assert len(svg.findall(".//svg:polyline", names)) == 21


def test_a_line_goes_through_its_points() -> None:
    figures = [
        Figure("inventory-1", "naive ms", 10.0 ** (power - 3), {"items": 10**power})
        for power in (3, 4, 5)
    ]
    left, right = plot.LEFT, plot.PANEL_WIDTH - plot.RIGHT
    bottom, middle = plot.PANEL_HEIGHT - plot.BOTTOM, (left + right) / 2
    half = (bottom + plot.TOP) / 2
    expected = f"{float(left)},{float(bottom)} {middle},{half} {float(right)},{float(plot.TOP)}"
    assert f'points="{expected}"' in plot.draw(figures)


def test_the_lake_is_drawn_with_a_line_for_each_way() -> None:
    ways = {"step ms": 10.0, "step ms, 1,000 rows": 100.0, "recompute ms": 1_000.0}
    figures = [
        Figure(f"lake-{condition}", measure, ms * items / 1_000_000, {"items": items})
        for condition in CONDITIONS
        for items in (1_000_000, 10_000_000)
        for measure, ms in ways.items()
    ]
    others = [
        Figure("lake-floor", "step ms", 5.0, {"items": 1_000_000}),
        Figure("lake-parts", "naive ms", 5.0, {"items": 1_000_000, "changed": 0.5}),
        Figure("lake-inventory", "largest/smallest", 1.2, {"items": [1_000_000, 10_000_000]}),
    ]
    drawn = plot.draw([*figures, *others])
    assert drawn == plot.draw(figures)
    svg = ElementTree.fromstring(drawn)
    names = {"svg": "http://www.w3.org/2000/svg"}
    assert svg.get("width") == str(3 * plot.PANEL_WIDTH)
    assert len(svg.findall("svg:g", names)) == 3
    assert len(svg.findall(".//svg:polyline", names)) == 9
    left, right = float(plot.LEFT), float(plot.PANEL_WIDTH - plot.RIGHT)
    bottom = plot.PANEL_HEIGHT - plot.BOTTOM
    third = (bottom - plot.TOP) / 3
    expected = f"{left},{float(bottom)} {right},{round(bottom - third, 1)}"
    assert f'points="{expected}" stroke="{plot.BLUE}"' in drawn


def test_two_benchmarks_are_drawn_below_each_other() -> None:
    figures = [
        Figure(name, measure, 1.0, {"items": 10})
        for name, measure in (("inventory-1", "naive ms"), ("lake-levels", "recompute ms"))
    ]
    svg = ElementTree.fromstring(plot.draw(figures))
    height = plot.PANEL_HEIGHT + plot.LEGEND_HEIGHT
    assert svg.get("height") == str(2 * height)
    panels = svg.findall("svg:g", {"svg": "http://www.w3.org/2000/svg"})
    assert [panel.get("transform") for panel in panels] == [
        "translate(0 0)",
        f"translate(0 {height})",
    ]


@pytest.mark.parametrize(
    ("names", "picture", "message"),
    [
        (["inventary"], None, "no benchmark inventary"),
        (["point"], "x.svg", "no picture of point"),
        (["lake-parts"], "x.svg", "no picture of lake-parts"),
        (["inventory"], "missing/x.svg", "cannot write"),
    ],
)
def test_what_cannot_be_measured_or_drawn_is_refused_at_once(
    names: list[str], picture: str | None, message: str, tmp_path: Path
) -> None:
    where = tmp_path / picture if picture else None
    with pytest.raises(HarkenError, match=message):
        run_benchmarks(names, [100], 1, as_json=True, picture=where)
