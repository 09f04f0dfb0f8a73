"""The figures of `harken bench inventory`, `lake` and `sql` as pictures like the thesis's 9.1 to
9.7.

One panel for each benchmark: items to the right, milliseconds upwards, both logarithmic, and a line
for each way of doing the work. The queries of TPC-H stand next to each other in one panel, and each
has one of its own for changes of several sizes. Written as SVG, so that nothing else is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from harken.bench.figures import Figure
from harken.bench.monitoring import BENCHMARKS, Benchmark
from harken.bench.tpch import QUERIES

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 330, 270, 4
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 40, 42
"""The space around the axes of a panel."""
LEGEND_HEIGHT, LEGEND_STEP = 30, 150

BLUE, RED, GREEN, ORANGE = "#1f6fb4", "#c8452c", "#3c9143", "#e08a1e"

STYLE = (
    "text { font: 11px sans-serif; fill: #222 } .title { font-size: 13px; font-weight: bold } "
    ".axis { stroke: #445; fill: none } .grid { stroke: #dde; fill: none } "
    "polyline { fill: none; stroke-width: 1.8 }"
)

Points = dict[float, float]
"""Milliseconds at each size."""


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    colour: str
    dashed: bool = False

    @property
    def stroke(self) -> str:
        return f'stroke="{self.colour}"' + (' stroke-dasharray="5 4"' if self.dashed else "")


@dataclass(frozen=True, slots=True)
class Picture:
    """Which figures of a benchmark are drawn."""

    panels: Mapping[str, str]
    """The names of figures, and the headings of their panels."""
    lines: Mapping[str, Line]
    """By the measures of figures."""
    upwards: str
    across: str = "items"
    """The parameter on the horizontal axis."""
    by_query: str | None = None
    """The name of figures that have a panel for each query instead."""

    def panel(self, figure: Figure) -> str:
        return figure.params["query"] if figure.name == self.by_query else figure.name


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis between two powers of ten, onto a range of pixels."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float) -> Scale:
        """
        >>> Scale.around([20, 3000], 0, 300)
        Scale(low=1, high=4, start=0, end=300)
        """
        logs = [math.log10(value) for value in values]
        low = math.floor(min(logs))
        return cls(low, max(low + 1, math.ceil(max(logs))), start, end)

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def title(benchmark: Benchmark) -> str:
    whose = "all items" if benchmark.changes_all else "one item"
    return f"{benchmark.number}: {', '.join(benchmark.functions)} of {whose}"


INVENTORY = Picture(
    {benchmark.name: title(benchmark) for benchmark in BENCHMARKS},
    {
        "incremental ms": Line("incremental", BLUE),
        "naive ms": Line("naive", RED),
        # It coincides with one of the others: let that show through.
        "adaptive ms": Line("adaptive", GREEN, dashed=True),
    },
    "ms/transaction",
)
LAKE = Picture(
    {
        "lake-inventory": "the condition of the thesis",
        "lake-aggregate": "one with a grouped aggregate",
        "lake-levels": "one of three levels",
    },
    {
        "step ms": Line("step, 1 row", BLUE),
        "step ms, 1,000 rows": Line("step, 1,000 rows", GREEN),
        "recompute ms": Line("recompute", RED),
    },
    "ms",
)
SWEEP = Picture(
    {query: query for query in QUERIES},
    {
        "incremental ms": Line("incremental", BLUE),
        "naive ms": Line("naive", RED),
        "adaptive ms": Line("adaptive", GREEN, dashed=True),
    },
    "ms",
    across="change",
    by_query="sql-sweep",
)
PICTURES = (INVENTORY, LAKE, SWEEP)
WAYS = {
    "harken ms": Line("Harken", BLUE),
    "by hand ms": Line("triggers by hand", ORANGE),
    "SQLite ms": Line("SQLite, recomputed", RED),
    "DuckDB ms": Line("DuckDB, recomputed", GREEN),
}
"""Of the benchmark sql: the ways to answer a query."""
DRAWN = frozenset(
    {"inventory", "inventory-small", "inventory-large", "lake", "lake-steps", "sql", "sql-sweep"}
)
"""The benchmarks that have figures to draw."""


def draw(figures: Iterable[Figure]) -> str:
    """An SVG document; empty panels for what was not measured are left out."""
    figures = list(figures)
    width = height = 0
    parts: list[str] = []
    for picture in PICTURES:
        measured = _measured(picture, figures)
        if measured:
            parts += _picture(picture, measured, height)
            width = max(width, min(COLUMNS, len(measured)) * PANEL_WIDTH)
            height += math.ceil(len(measured) / COLUMNS) * PANEL_HEIGHT + LEGEND_HEIGHT
    for heading, ways in _side_by_side(figures).items():
        parts += _queries(heading, ways, height)
        width = max(width, COLUMNS * PANEL_WIDTH)
        height += PANEL_HEIGHT + LEGEND_HEIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _measured(picture: Picture, figures: Iterable[Figure]) -> dict[str, dict[str, Points]]:
    """For each panel that has some, its lines by their measures."""
    found: dict[str, dict[str, Points]] = {}
    for figure in figures:
        panel = picture.panel(figure)
        if panel in picture.panels and figure.measure in picture.lines:
            points = found.setdefault(panel, {}).setdefault(figure.measure, {})
            points[figure.params[picture.across]] = figure.value
    return {name: found[name] for name in picture.panels if name in found}


def _picture(
    picture: Picture, measured: Mapping[str, Mapping[str, Points]], top: int
) -> Iterable[str]:
    for number, (name, lines) in enumerate(measured.items()):
        x, y = number % COLUMNS * PANEL_WIDTH, top + number // COLUMNS * PANEL_HEIGHT
        panel = "\n".join(_panel(picture, name, lines))
        yield f'<g transform="translate({x} {y})">\n{panel}\n</g>'
    below = top + math.ceil(len(measured) / COLUMNS) * PANEL_HEIGHT
    yield from _legend(picture.lines.values(), below + 16)


def _panel(picture: Picture, name: str, lines: Mapping[str, Points]) -> Iterable[str]:
    sizes = [size for points in lines.values() for size in points]
    times = [value for points in lines.values() for value in points.values()]
    bottom, right = PANEL_HEIGHT - BOTTOM, PANEL_WIDTH - RIGHT
    across, up = Scale.around(sizes, LEFT, right), Scale.around(times, bottom, TOP)
    yield f'<text class="title" x="{LEFT}" y="{TOP - 16}">{escape(picture.panels[name])}</text>'
    for tick in across.ticks():
        x = across.place(tick)
        yield f'<path class="grid" d="M{x} {TOP}V{bottom}"/>'
        yield _text(x, bottom + 16, f"{tick:,.12g}", "middle")
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<path class="grid" d="M{LEFT} {y}H{right}"/>'
        yield _text(LEFT - 6, y + 4, f"{tick:,g}", "end")
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield _text(LEFT, TOP - 3, picture.upwards, "start")
    yield _text(right, bottom + 31, picture.across, "end")
    for measure, points in lines.items():
        places = [(across.place(n), up.place(ms)) for n, ms in points.items()]
        yield from _line(picture.lines[measure], places)


def _side_by_side(figures: Iterable[Figure]) -> dict[str, dict[str, dict[str, float]]]:
    """For each scale and change the milliseconds of each way, by query."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for figure in figures:
        if figure.name == "sql" and figure.measure in WAYS:
            scale, change = figure.params["scale"], figure.params["change"]
            heading = f"TPC-H, scale {scale:g}, {change:.6g} of the rows changed"
            ways = found.setdefault(heading, {}).setdefault(figure.measure, {})
            ways[figure.params["query"]] = figure.value
    return found


def _queries(heading: str, ways: Mapping[str, Mapping[str, float]], top: int) -> Iterable[str]:
    """The queries next to each other, and for each a point for every way."""
    queries = sorted({query for times in ways.values() for query in times})
    bottom, right = PANEL_HEIGHT - BOTTOM, COLUMNS * PANEL_WIDTH - RIGHT
    step = (right - LEFT) / len(queries)
    places = {query: round(LEFT + (i + 0.5) * step, 1) for i, query in enumerate(queries)}
    times = [ms for points in ways.values() for ms in points.values() if ms > 0]
    up = Scale.around(times, bottom, TOP)
    yield f'<g transform="translate(0 {top})">'
    yield f'<text class="title" x="{LEFT}" y="{TOP - 16}">{escape(heading)}</text>'
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<path class="grid" d="M{LEFT} {y}H{right}"/>'
        yield _text(LEFT - 6, y + 4, f"{tick:,g}", "end")
    for query, x in places.items():
        yield f'<path class="grid" d="M{x} {TOP}V{bottom}"/>'
        yield _text(x, bottom + 16, query, "middle")
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield _text(LEFT, TOP - 3, "ms", "start")
    for measure, points in ways.items():
        for query, ms in points.items():
            if ms > 0:
                colour = WAYS[measure].colour
                yield f'<circle cx="{places[query]}" cy="{up.place(ms)}" r="4" fill="{colour}"/>'
    yield "</g>"
    yield from _legend(WAYS.values(), top + PANEL_HEIGHT + 16)


def _line(line: Line, points: list[tuple[float, float]]) -> Iterable[str]:
    path = " ".join(f"{x},{y}" for x, y in points)
    yield f'<polyline points="{path}" {line.stroke}/>'
    for x, y in points:
        yield f'<circle cx="{x}" cy="{y}" r="2.6" fill="{line.colour}"/>'


def _legend(lines: Iterable[Line], y: float) -> Iterable[str]:
    for number, line in enumerate(lines):
        x = LEFT + number * LEGEND_STEP
        yield f'<path d="M{x} {y}h26" stroke-width="1.8" {line.stroke}/>'
        yield _text(x + 32, y + 4, line.label, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
