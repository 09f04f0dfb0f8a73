"""What an object reads and what reads it, as a picture one can walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT, GAP, ACROSS = 220, 32, 12, 120
LONGEST = 28
"""Characters of a name that fit into a box."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    title: str
    path: str
    """Its page; empty if it has none."""


def picture(name: str, reads: Sequence[Neighbour], readers: Sequence[Neighbour]) -> Markup:
    """Three columns: what it reads, the object, and what reads it."""
    rows = max(len(reads), len(readers), 1)
    height = rows * (HEIGHT + GAP) + GAP
    middle = height / 2
    parts: list[Markup] = []
    for side, found in ((0, reads), (2, readers)):
        top = middle - (len(found) * (HEIGHT + GAP) - GAP) / 2
        for index, each in enumerate(found):
            y = top + index * (HEIGHT + GAP)
            parts += [_arrow(side, y + HEIGHT / 2, middle), _box(side, y, each)]
    parts.append(_box(1, middle - HEIGHT / 2, Neighbour(name, ""), css="self"))
    width = 3 * WIDTH + 2 * ACROSS + 2
    label = f"{name} reads {_names(reads)} and is read by {_names(readers)}"
    return Markup(
        '<svg class="graph" viewBox="0 0 {} {:.0f}" width="{}" height="{:.0f}" role="group" '
        'aria-label="{}">{}</svg>'
    ).format(width, height, width, height, label, Markup("").join(parts))


def _names(found: Sequence[Neighbour]) -> str:
    return ", ".join(each.title for each in found) or "nothing"


def _left(side: int) -> int:
    return 1 + side * (WIDTH + ACROSS)


def _box(side: int, y: float, each: Neighbour, css: str = "") -> Markup:
    left = _left(side)
    shown = each.title if len(each.title) <= LONGEST else f"{each.title[: LONGEST - 1]}…"
    text = Markup('<text x="{}" y="{:.1f}"><title>{}</title>{}</text>').format(
        left + 12, y + HEIGHT / 2 + 4, each.title, shown
    )
    linked = Markup('<a href="{}">{}</a>').format(each.path, text) if each.path else text
    return Markup(
        '<g class="{}"><rect x="{}" y="{:.1f}" width="{}" height="{}" rx="6"/>{}</g>'
    ).format(css, left, y, WIDTH, HEIGHT, linked)


def _arrow(side: int, y: float, middle: float) -> Markup:
    if side == 0:
        start, end = (_left(0) + WIDTH, y), (_left(1), middle)
    else:
        start, end = (_left(1) + WIDTH, middle), (_left(2), y)
    half = (start[0] + end[0]) / 2
    (x, above), (right, below) = start, end
    path = f"M{x} {above:.1f}C{half} {above:.1f} {half} {below:.1f} {right} {below:.1f}"
    return Markup('<path d="{}"/>').format(escape(path))
