"""What Spark read to answer a query, as its plan counted it.

A scan counts the files it was given and the rows it handed on; row groups and pages that were
skipped are rows that are not among these. A client of Spark Connect knows what the server sends
along with the rows, and nothing of a query that it did not collect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Metrics:
    """Summed over the scans of a query; None where the session does not tell."""

    scans: int
    rows: int | None
    files: int | None
    bytes: int | None

    def __str__(self) -> str:
        known = [f"{self.scans} scans"]
        known += [
            f"{value} {name}"
            for name in ("files", "rows", "bytes")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join(known)


UNKNOWN = Metrics(0, None, None, None)


def metrics(frame: DataFrame) -> Metrics:
    """Of a DataFrame whose rows were just collected; of another one, nothing is known."""
    if hasattr(frame, "_jdf"):
        return _sum(list(_classic(frame._jdf.queryExecution().executedPlan())))
    return _sum(list(_connect(frame)))


def _sum(scans: list[dict[str, int]]) -> Metrics:
    def total(name: str) -> int | None:
        known = [scan[name] for scan in scans if name in scan]
        return sum(known) if known else None

    return Metrics(len(scans), total("numOutputRows"), total("numFiles"), total("filesSize"))


def _classic(plan: Any) -> Iterator[dict[str, int]]:
    name = plan.nodeName()
    if name == "AdaptiveSparkPlan":
        yield from _classic(plan.executedPlan())
    elif name.endswith("QueryStage"):
        yield from _classic(plan.plan())
    elif _is_scan(name):
        yield {pair._1(): pair._2().value() for pair in _each(plan.metrics())}
    else:
        for child in (*_each(plan.children()), *_each(plan.subqueries())):
            yield from _classic(child)


def _each(collection: Any) -> Iterator[Any]:
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _connect(frame: Any) -> Iterator[dict[str, int]]:
    information = frame.executionInfo
    if information is None or information.metrics is None:
        return
    _, nodes = information.metrics.extract_graph()
    for node in nodes.values():
        if _is_scan(node.name):
            yield {metric.name: metric.value for metric in node.metrics}


def _is_scan(name: str) -> bool:
    return name.startswith(("Scan parquet", "FileScan", "BatchScan"))
