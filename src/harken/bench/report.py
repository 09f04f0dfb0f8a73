"""Runs benchmarks and prints their figures: lines of JSON for tools, a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console, Group
from rich.status import Status
from rich.table import Table

from harken.bench import BENCHMARKS, OVER_SIZES, PARTS, SWEEPS, TPCH, plot, run
from harken.bench.figures import Figure, rounded
from harken.bench.record import PUBLISHED, Record
from harken.bench.tpch import QUERIES
from harken.errors import HarkenError

MEASURE, VALUE = 30, 12
"""The minimum widths of a table's columns, so that parts of it align."""
VERDICTS = {None: "", True: "[green]holds[/]", False: "[red]misses[/]"}


def run_benchmarks(
    names: Sequence[str],
    items: Sequence[int],
    rounds: int | None,
    tpch: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    *,
    as_json: bool,
    picture: Path | None = None,
    record: Record | None = None,
) -> None:
    """All benchmarks if none is named. Progress goes to standard error."""
    chosen = list(names or BENCHMARKS)
    _check(chosen, picture)
    _check_tpch(chosen, tpch)
    measured: list[Figure] = []
    for name in chosen:
        _print(name, _kept(run(name, items, rounds, tpch), measured, record), as_json=as_json)
    if picture is not None:
        picture.write_text(plot.draw(measured), encoding="utf-8")


def run_published(record: Record | None, *, as_json: bool) -> None:
    """All benchmarks that the documents quote, each in the size that they quote."""
    for each in PUBLISHED:
        figures = run(each.name, each.items, each.rounds, each.tpch)
        _print(each.name, _kept(figures, [], record), as_json=as_json)


def _print(name: str, figures: Iterable[Figure], *, as_json: bool) -> None:
    if as_json:
        for figure in figures:
            print(figure.json_line(), flush=True)
        return
    output, progress = Console(highlight=False), Console(stderr=True)
    with progress.status(f"bench {name} …") as status:
        for shown in _shown(name, _told(figures, status)):
            output.print(shown)
    output.print()


def _shown(name: str, figures: Iterable[Figure]) -> Iterator[Table | Group]:
    """The parts to print, each as soon as its figures are known."""
    if name in SWEEPS:
        return by_change(figures)
    if name in TPCH:
        return by_query(figures)
    by_items = name in OVER_SIZES and name != "closure"
    return side_by_side(figures) if by_items else tables(figures)


def _told(figures: Iterable[Figure], status: Status) -> Iterator[Figure]:
    """Show the progress."""
    for figure in figures:
        status.update(f"bench {title(figure)} …")
        yield figure


def _check(names: list[str], picture: Path | None) -> None:
    """Report mistakes before hours have passed."""
    for name in names:
        if name not in BENCHMARKS and name not in PARTS:
            raise HarkenError(
                f"there is no benchmark {name}",
                code="unknown-benchmark",
                hint=f"use {', '.join([*BENCHMARKS, *PARTS])}",
            )
    if picture is None:
        return
    if plot.DRAWN.isdisjoint(names):
        raise HarkenError(
            f"there is no picture of {', '.join(names)}",
            code="bad-value",
            hint="--plot draws the benchmarks inventory, lake and sql",
        )
    try:
        picture.touch()
    except OSError as error:
        raise HarkenError(
            f"cannot write {picture}: {error.strerror}",
            code="cannot-open",
            hint="give another path",
        ) from error


def _check_tpch(names: list[str], tpch: Mapping[str, Sequence[Any]]) -> None:
    if any(tpch.values()) and TPCH.isdisjoint(names):
        raise HarkenError(
            f"{', '.join(names)} has no scale, query or change",
            code="bad-value",
            hint=f"they belong to {', '.join(sorted(TPCH))}",
        )
    for query in tpch.get("queries", ()):
        if query not in QUERIES:
            raise HarkenError(
                f"TPC-H has no query {query}",
                code="bad-value",
                hint=f"it has {QUERIES[0]} to {QUERIES[-1]}",
            )


def _kept(
    figures: Iterable[Figure], measured: list[Figure], record: Record | None
) -> Iterator[Figure]:
    for figure in figures:
        measured.append(figure)
        if record is not None:
            record.keep([figure])
        yield figure


def tables(figures: Iterable[Figure]) -> Iterator[Table]:
    """The figures of the same work stand together under its name."""
    for heading, group in groupby(figures, key=title):
        shown = Table.grid(padding=(0, 2))
        shown.add_column(min_width=MEASURE)
        shown.add_column(justify="right", min_width=VALUE)
        shown.add_row(f"[bold]{heading}[/]")
        for figure in group:
            shown.add_row(
                f"  {figure.measure}",
                show(rounded(figure.value)),
                f"needs {figure.needs}" if figure.needs else "",
                VERDICTS[figure.holds],
            )
        yield shown


def side_by_side(figures: Iterable[Figure]) -> Iterator[Group]:
    """A table for each name: the sizes below each other, what was measured next to each other,
    and under it the targets."""
    for name, group in groupby(figures, key=lambda figure: figure.name):
        of_name = list(group)
        targets = map(_target, filter(_has_target, of_name))
        yield Group(f"[bold]{name}[/]", _grid(of_name, _size_of(of_name[0])), *targets, "")


def by_query(figures: Iterable[Figure]) -> Iterator[Group]:
    """A table for each scale and change: the queries below each other, and under it the targets."""
    for heading, group in groupby(figures, key=partial(_without, "query")):
        of_heading = list(group)
        targets = map(_query_target, filter(_has_target, of_heading))
        yield Group(f"[bold]{heading}[/]", _grid(of_heading, "query"), *targets, "")


def by_change(figures: Iterable[Figure]) -> Iterator[Group]:
    """A table for each query and scale: the changes below each other."""
    for heading, group in groupby(figures, key=partial(_without, "change")):
        of_heading = list(group)
        missed = (each for each in of_heading if each.holds is False)
        yield Group(f"[bold]{heading}[/]", _grid(of_heading, "change"), *map(_missed, missed), "")


def _without(param: str, figure: Figure) -> str:
    """
    >>> _without("query", Figure("sql", "harken ms", 1.0, {"query": "q01", "change": 0.0001}))
    'sql (change 0.01%)'
    """
    params = (f"{key} {_param(key, figure)}" for key in figure.params if key != param)
    return f"{figure.name} ({', '.join(params)})"


def _param(key: str, figure: Figure) -> str:
    value = figure.params[key]
    if key != "change":
        return show(value)
    return f"{f'{value:.6%}'.rstrip('%').rstrip('0').rstrip('.')}%"


def _missed(figure: Figure) -> str:
    value, change = show(rounded(figure.value)), _param("change", figure)
    return f"  {change}: {figure.measure} {value}, needs {figure.needs}: {VERDICTS[False]}"


def _query_target(figure: Figure) -> str:
    value, verdict = show(rounded(figure.value)), VERDICTS[figure.holds]
    query = figure.params["query"]
    return f"  {query}: {figure.measure} {value}, needs {figure.needs}: {verdict}"


def _size_of(figure: Figure) -> str:
    """The parameter by which the sizes of a benchmark differ."""
    return "items" if "items" in figure.params else next(iter(figure.params))


def _grid(figures: list[Figure], rows: str = "items") -> Table:
    measures = list(dict.fromkeys(figure.measure for figure in figures))
    shown = Table(box=None, padding=(0, 1, 0, 0), header_style="")
    for heading in (rows, *measures):
        narrow = heading.replace(" ", "\n").replace("/", "/\n")
        shown.add_column(narrow, justify="right", no_wrap=True, vertical="bottom")
    cells: dict[str, dict[str, str]] = {}
    for figure in figures:
        size = _param(rows, figure)
        cells.setdefault(size, {})[figure.measure] = show(rounded(figure.value))
    for size, values in cells.items():
        shown.add_row(size, *(values.get(measure, "") for measure in measures))
    return shown


def _has_target(figure: Figure) -> bool:
    return figure.needs is not None


def _target(figure: Figure) -> str:
    size = _size_of(figure)
    items, value = show(figure.params[size]), show(rounded(figure.value))
    verdict = VERDICTS[figure.holds]
    return f"  {items} {size}: {figure.measure} {value}, needs {figure.needs}: {verdict}"


def title(figure: Figure) -> str:
    params = [
        value if isinstance(value, str) else f"{show(value)} {key}"
        for key, value in figure.params.items()
    ]
    return f"{figure.name} ({', '.join(params)})"


def show(value: object) -> str:
    """
    >>> show(1000000), show(1.5), show("file")
    ('1,000,000', '1.5', 'file')
    """
    return f"{value:,}" if isinstance(value, int | float) else str(value)
