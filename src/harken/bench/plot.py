"""The figures of `harken bench inventory` as a picture like the thesis's 9.1 to 9.7.

One panel for each benchmark: items to the right, milliseconds for a transaction upwards, both
logarithmic, and a line for each strategy. Written as SVG, so that nothing else is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from harken.bench.figures import Figure
from harken.bench.monitoring import BENCHMARKS, STRATEGIES, Benchmark

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 330, 270, 4
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 40, 42
"""The space around the axes of a panel."""

COLOURS = {"incremental": "#1f6fb4", "naive": "#c8452c", "adaptive": "#3c9143"}
DASHES = {"adaptive": ' stroke-dasharray="5 4"'}
"""Adaptive lies on one of the others: let it shine through."""

STYLE = (
    "text { font: 11px sans-serif; fill: #222 } .title { font-size: 13px; font-weight: bold } "
    ".axis { stroke: #445; fill: none } .grid { stroke: #dde; fill: none } "
    "polyline { fill: none; stroke-width: 1.8 }"
)

Lines = dict[str, dict[int, float]]
"""For each strategy its milliseconds at each size."""


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


def draw(figures: Iterable[Figure]) -> str:
    """An SVG document; empty panels for what was not measured are left out."""
    lines = _lines(figures)
    panels = [
        (benchmark, lines[benchmark.name]) for benchmark in BENCHMARKS if benchmark.name in lines
    ]
    rows = math.ceil(len(panels) / COLUMNS)
    width, height = COLUMNS * PANEL_WIDTH, rows * PANEL_HEIGHT + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(height - 14),
    ]
    for number, (benchmark, measured) in enumerate(panels):
        x, y = number % COLUMNS * PANEL_WIDTH, number // COLUMNS * PANEL_HEIGHT
        panel = "\n".join(_panel(title(benchmark), measured))
        parts.append(f'<g transform="translate({x} {y})">\n{panel}\n</g>')
    return "\n".join([*parts, "</svg>\n"])


def title(benchmark: Benchmark) -> str:
    whose = "all items" if benchmark.changes_all else "one item"
    return f"{benchmark.number}: {', '.join(benchmark.functions)} of {whose}"


def _lines(figures: Iterable[Figure]) -> dict[str, Lines]:
    """The times among the figures, by benchmark."""
    names = {f"{strategy} ms": strategy for strategy in STRATEGIES}
    found: dict[str, Lines] = {}
    for figure in figures:
        if figure.measure in names:
            line = found.setdefault(figure.name, {}).setdefault(names[figure.measure], {})
            line[figure.params["items"]] = figure.value
    return found


def _panel(heading: str, lines: Mapping[str, Mapping[int, float]]) -> Iterable[str]:
    sizes = [size for line in lines.values() for size in line]
    times = [value for line in lines.values() for value in line.values()]
    bottom, right = PANEL_HEIGHT - BOTTOM, PANEL_WIDTH - RIGHT
    across, up = Scale.around(sizes, LEFT, right), Scale.around(times, bottom, TOP)
    yield f'<text class="title" x="{LEFT}" y="{TOP - 16}">{escape(heading)}</text>'
    for tick in across.ticks():
        x = across.place(tick)
        yield f'<path class="grid" d="M{x} {TOP}V{bottom}"/>'
        yield _text(x, bottom + 16, f"{tick:,.0f}", "middle")
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<path class="grid" d="M{LEFT} {y}H{right}"/>'
        yield _text(LEFT - 6, y + 4, f"{tick:,g}", "end")
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield _text(LEFT, TOP - 3, "ms/transaction", "start")
    yield _text(right, bottom + 31, "items", "end")
    for strategy, line in lines.items():
        yield from _line(strategy, [(across.place(n), up.place(ms)) for n, ms in line.items()])


def _line(strategy: str, points: list[tuple[float, float]]) -> Iterable[str]:
    colour = COLOURS[strategy]
    path = " ".join(f"{x},{y}" for x, y in points)
    yield f'<polyline points="{path}" stroke="{colour}"{DASHES.get(strategy, "")}/>'
    for x, y in points:
        yield f'<circle cx="{x}" cy="{y}" r="2.6" fill="{colour}"/>'


def _legend(y: float) -> Iterable[str]:
    for number, (strategy, colour) in enumerate(COLOURS.items()):
        x = LEFT + number * 120
        dash = DASHES.get(strategy, "")
        yield f'<path d="M{x} {y}h26" stroke="{colour}" stroke-width="1.8"{dash}/>'
        yield _text(x + 32, y + 4, strategy, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
