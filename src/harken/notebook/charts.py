"""A small chart as SVG: bars for names, a line where the labels have an order of their own.

Law: text from the data is escaped, and the chart loads nothing.
"""

from __future__ import annotations

import datetime
import decimal
import html
from collections.abc import Sequence
from typing import Any

WIDTH, BAR, GAP, LABELS = 480, 18, 4, 140
HEIGHT, MARGIN = 160, 8
MOST_BARS = 30
ORDERED = (int, float, decimal.Decimal, datetime.date)
Point = tuple[Any, float]


def chart_svg(rows: Sequence[tuple[Any, Any]]) -> str:
    """Labels with their numbers; rows without a number are left out.

    >>> chart_svg([("pen", 3), ("<b>", 1)]).count("<rect")
    2
    >>> chart_svg([(1, 3), (2, 1)]).count("<polyline")
    1
    """
    points = [(label, float(value)) for label, value in rows if _is_number(value)]
    if points and all(isinstance(label, ORDERED) for label, _ in points):
        return _line(sorted(points, key=lambda point: point[0]))
    return _bars(points[:MOST_BARS])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)


def _bars(points: Sequence[Point]) -> str:
    low, high = _range(points)
    scale = (WIDTH - LABELS) / (high - low)
    parts = []
    for index, (label, value) in enumerate(points):
        top = index * (BAR + GAP)
        left = LABELS + (min(value, 0) - low) * scale
        parts.append(
            f'<text x="{LABELS - 6}" y="{top + 13}" text-anchor="end">{html.escape(str(label))}'
            f'</text><rect x="{left:.1f}" y="{top}" width="{abs(value) * scale:.1f}" '
            f'height="{BAR}" fill="#4c78a8"><title>{value:g}</title></rect>'
        )
    return _svg(len(points) * (BAR + GAP), parts)


def _line(points: Sequence[Point]) -> str:
    low, high = _range(points)
    step = (WIDTH - 2 * MARGIN) / max(1, len(points) - 1)
    scale = (HEIGHT - 2 * MARGIN) / (high - low)
    places = " ".join(
        f"{MARGIN + index * step:.1f},{HEIGHT - MARGIN - (value - low) * scale:.1f}"
        for index, (_, value) in enumerate(points)
    )
    first, last = html.escape(str(points[0][0])), html.escape(str(points[-1][0]))
    return _svg(
        HEIGHT + 16,
        [
            f'<polyline points="{places}" fill="none" stroke="#4c78a8" stroke-width="2"/>'
            f'<text x="{MARGIN}" y="{HEIGHT + 12}">{first}</text>'
            f'<text x="{WIDTH - MARGIN}" y="{HEIGHT + 12}" text-anchor="end">{last}</text>'
        ],
    )


def _range(points: Sequence[Point]) -> tuple[float, float]:
    """From nothing, or the least below it, to the greatest."""
    values = [value for _, value in points]
    low, high = min([0.0, *values]), max([0.0, *values])
    return low, high if high > low else low + 1


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )
