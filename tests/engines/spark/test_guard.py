"""Spark keeps the guard of what can fail where the compiler put it.

`after(...)` leans on an expression that Spark takes for random (`HOLDS`). A Spark that saw through
it would drop it from the plan and move what stands behind it below joins and other conditions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.engines.spark.faults import translated
from harken.engines.spark.sql_expressions import HOLDS
from harken.errors import ArithmeticFault
from tests.engines.spark.test_compile import Shop
from tests.harness.both import Case, provide

JOINED = (
    "select i, j for each item i, item j where next(i) = j and active(i) = true "
    "and div(8, quantity(i)) = 2"
)
QUESTIONS = (
    JOINED,
    "select i for each item i where 100 / quantity(i) > 20 and quantity(i) != 0",
    "select n for each integer n where n + 1 = numbers()",
    "select i, count(select n for each integer n where n = numbers() and div(n, quantity(i)) > 0) "
    "for each item i where quantity(i) > 3",
)


def plans(frame: Any) -> dict[str, str]:
    """Of a DataFrame whose rows were collected: the second is then the one that was run."""
    execution = frame._jdf.queryExecution()
    return {
        "optimized": execution.optimizedPlan().toString(),
        "executed": execution.executedPlan().toString(),
    }


def failing(plan: str) -> list[str]:
    """The operators in which something can fail."""
    return [line for line in plan.upper().splitlines() if "RAISE_ERROR(" in line]


def is_guarded(operator: str) -> bool:
    """A test inside a join or a scan is asked of rows that the join would leave out."""
    name, behind = operator.lstrip(" +-:*()0123456789").split(" ", 1)
    guard = behind.find(f"CASE WHEN ({HOLDS.upper()}) THEN")
    return name in ("FILTER", "PROJECT") and 0 <= guard < behind.index("RAISE_ERROR(")


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_the_guard_is_in_the_plan_that_runs(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """From files: what stands in the statement itself Spark computes while it optimizes."""
    for text in QUESTIONS:
        case = shop.ask(text)
        provide(spark, case, tmp_path)
        frame = case.query.dataframe(spark, case.values)
        with translated():
            case.check(map(tuple, frame.collect()))
        for which, plan in plans(frame).items():
            assert failing(plan), f"{text}: nothing can fail\n{plan}"
            for operator in failing(plan):
                assert is_guarded(operator), f"{which} plan of {text}:\n{plan}"


def test_without_the_guard_the_plan_fails(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """That is what the test above would see if Spark saw through the guard."""
    case = shop.ask(JOINED)
    provide(spark, case, tmp_path)
    frame = unguarded(spark, case)
    with pytest.raises(ArithmeticFault), translated():
        frame.collect()
    for plan in plans(frame).values():
        assert not all(map(is_guarded, failing(plan)))


def unguarded(spark: Any, case: Case) -> Any:
    return spark.sql(case.query.text(case.values).replace(HOLDS, "1 >= 0"))
