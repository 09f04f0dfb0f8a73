"""The network of a view or rule as a picture: stored relations at the bottom, derived ones above,
the condition at the top, and on each line the number of differentials that carry a change
upwards. Below each box stands how its change was found in the last wave of this session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from harken.api.network_report import NodeExplanation

BOX_WIDTH, BOX_HEIGHT, GAP, MARGIN = 230, 46, 24, 30
LEVEL_GAP = 90
LONGEST = 34

_STYLE = (
    "text { font: 13px sans-serif; fill: #222; text-anchor: middle } "
    ".small { font-size: 11px; fill: #666 } "
    ".level { font-size: 11px; fill: #999; text-anchor: start } "
    "rect, ellipse { fill: #f7f7fb; stroke: #445; stroke-width: 1.2 } "
    ".last { font-size: 11px; fill: #245; font-weight: 600 } .taken { stroke-width: 2.4 } "
    ".condition { fill: #eef5ea } .derived { fill: #fdf6e3 } "
    "line { stroke: #778; stroke-width: 1.2 }"
)


@dataclass(frozen=True, slots=True)
class Box:
    """A node: what is written in it, on which level it stands, and what it is made from."""

    id: str
    level: int
    title: str
    about: str
    below: tuple[str, ...]
    kind: str
    """condition, derived, or stored"""
    is_round: bool = False
    notes: Mapping[str, str] | None = None
    """What is written above a node below."""
    last: str = ""
    """How its change was found in the last wave, shortly; `why` is the whole of it."""
    why: str = ""


def draw(network: Sequence[NodeExplanation], carried: Mapping[str, int]) -> str:
    """An SVG document. `carried` is the number of differentials that read the change of each
    influent."""
    differentials = {name: _differentials(number) for name, number in carried.items()}
    return draw_groups(
        {
            "": [
                Box(
                    id=node.id,
                    level=node.level,
                    title=f"Δ{node.id}",
                    about=f"level {node.level}, {_about(node)}",
                    below=tuple(node.influents),
                    kind={"condition": "condition", "stored": "stored"}.get(node.kind, "derived"),
                    notes=differentials if node.kind == "condition" else None,
                    last=_last(node),
                    why=str(node.decisions[-1]) if node.decisions else "",
                )
                for node in network
            ]
        }
    )


def draw_groups(groups: Mapping[str, Sequence[Box]]) -> str:
    """Each group of boxes with its title, one below the other."""
    widest, top, parts = 0.0, 0.0, list[str]()
    for title, boxes in groups.items():
        width, height, drawn = _group(boxes)
        if title:
            parts.append(_text(MARGIN, top + 20, title, "level"))
        parts += [f'<g transform="translate(0 {top})">', *drawn, "</g>"]
        widest, top = max(widest, width), top + height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest}" height="{top}" '
        f'viewBox="0 0 {widest} {top}">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"])


def _group(boxes: Sequence[Box]) -> tuple[float, float, list[str]]:
    """Width, height and shapes."""
    levels: dict[int, list[Box]] = {}
    for box in boxes:
        levels.setdefault(box.level, []).append(box)
    widest = max(len(row) for row in levels.values())
    width = 2 * MARGIN + widest * (BOX_WIDTH + GAP) - GAP
    order = sorted(levels, reverse=True)
    height = 2 * MARGIN + len(order) * BOX_HEIGHT + (len(order) - 1) * LEVEL_GAP
    places: dict[str, tuple[float, float]] = {}
    for row, level in enumerate(order):
        used = len(levels[level]) * (BOX_WIDTH + GAP) - GAP
        for column, box in enumerate(levels[level]):
            left = (width - used) / 2 + column * (BOX_WIDTH + GAP)
            places[box.id] = (left, MARGIN + row * (BOX_HEIGHT + LEVEL_GAP))
    parts: list[str] = []
    for box in boxes:
        for below in box.below:
            parts += _line(places[below], places[box.id])
            if box.notes is not None and below in box.notes:
                left, top = places[below]
                parts.append(_text(left + BOX_WIDTH / 2, top - 12, box.notes[below], "small"))
    return width, height, parts + [line for box in boxes for line in _shape(box, *places[box.id])]


def _differentials(number: int) -> str:
    return "1 differential" if number == 1 else f"{number} differentials"


def _line(below: tuple[float, float], above: tuple[float, float]) -> list[str]:
    x1, y1 = below[0] + BOX_WIDTH / 2, below[1]
    x2, y2 = above[0] + BOX_WIDTH / 2, above[1] + BOX_HEIGHT
    return [f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>']


def _shape(box: Box, left: float, top: float) -> list[str]:
    centre, kind = left + BOX_WIDTH / 2, f"{box.kind} taken" if box.last else box.kind
    if box.is_round:
        middle = top + BOX_HEIGHT / 2
        shape = (
            f'<ellipse class="{kind}" cx="{centre}" cy="{middle}" rx="{BOX_WIDTH / 2}" '
            f'ry="{BOX_HEIGHT / 2}"/>'
        )
    else:
        shape = (
            f'<rect class="{kind}" x="{left}" y="{top}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="6"/>'
        )
    return [
        shape,
        _text(centre, top + 20, _shortened(box.title)),
        _text(centre, top + 36, _shortened(box.about), "small"),
        *([_text(centre, top + BOX_HEIGHT + 14, box.last, "last", box.why)] if box.last else []),
    ]


def _last(node: NodeExplanation) -> str:
    """How the change of a node was found in the last wave that reached it.

    It is written below the box, as `differential, 2 changed rows, 0.31 ms`.
    """
    if not node.decisions:
        return ""
    taken = node.decisions[-1]
    changed = taken.numbers.get("changed_rows")
    parts = [taken.strategy]
    if changed is not None:
        parts.append("1 changed row" if changed == 1 else f"{changed:,.0f} changed rows")
    if taken.seconds is not None:
        parts.append(f"{1e3 * taken.seconds:.3g} ms")
    return ", ".join(parts)


def _about(node: NodeExplanation) -> str:
    if node.rows is None:
        return node.kind
    screened = ", screened" if node.events or node.checks else ""
    return f"{node.rows} rows{screened}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _text(x: float, y: float, text: str, kind: str = "name", title: str = "") -> str:
    more = f"<title>{escape(title)}</title>" if title else ""
    return f'<text class="{kind}" x="{x}" y="{y}">{more}{escape(text)}</text>'
