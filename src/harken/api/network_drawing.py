"""The network of a view or rule as a picture: stored relations at the bottom, derived ones above,
the condition at the top, and on each line the number of differentials that carry a change
upwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from harken.api.network_report import NodeExplanation

BOX_WIDTH, BOX_HEIGHT, GAP, MARGIN = 230, 46, 24, 30
LEVEL_GAP = 90
LONGEST = 34

_STYLE = (
    "text { font: 13px sans-serif; fill: #222; text-anchor: middle } "
    ".small { font-size: 11px; fill: #666 } "
    ".level { font-size: 11px; fill: #999; text-anchor: start } "
    "rect { fill: #f7f7fb; stroke: #445; stroke-width: 1.2 } "
    ".condition { fill: #eef5ea } .derived { fill: #fdf6e3 } "
    "line { stroke: #778; stroke-width: 1.2 }"
)


def draw(network: Sequence[NodeExplanation], carried: Mapping[str, int]) -> str:
    """An SVG document. `carried` is the number of differentials that read the change of each
    influent."""
    levels: dict[int, list[NodeExplanation]] = {}
    for node in network:
        levels.setdefault(node.level, []).append(node)
    widest = max(len(nodes) for nodes in levels.values())
    width = 2 * MARGIN + widest * (BOX_WIDTH + GAP) - GAP
    order = sorted(levels, reverse=True)
    height = 2 * MARGIN + len(order) * BOX_HEIGHT + (len(order) - 1) * LEVEL_GAP
    places: dict[str, tuple[float, float]] = {}
    for row, level in enumerate(order):
        nodes = levels[level]
        used = len(nodes) * (BOX_WIDTH + GAP) - GAP
        for column, node in enumerate(nodes):
            left = (width - used) / 2 + column * (BOX_WIDTH + GAP)
            places[node.id] = (left, MARGIN + row * (BOX_HEIGHT + LEVEL_GAP))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
    ]
    for node in network:
        for influent in node.influents:
            parts += _line(places[influent], places[node.id])
            if node.kind == "condition" and influent in carried:
                left, top = places[influent]
                parts.append(
                    _text(
                        left + BOX_WIDTH / 2,
                        top - 12,
                        _differentials(carried[influent]),
                        "small",
                    )
                )
    parts += [line for node in network for line in _box(node, *places[node.id])]
    return "\n".join([*parts, "</svg>"])


def _differentials(number: int) -> str:
    return "1 differential" if number == 1 else f"{number} differentials"


def _line(below: tuple[float, float], above: tuple[float, float]) -> list[str]:
    x1, y1 = below[0] + BOX_WIDTH / 2, below[1]
    x2, y2 = above[0] + BOX_WIDTH / 2, above[1] + BOX_HEIGHT
    return [f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>']


def _box(node: NodeExplanation, left: float, top: float) -> list[str]:
    centre = left + BOX_WIDTH / 2
    kind = {"condition": "condition", "stored": "stored"}.get(node.kind, "derived")
    return [
        f'<rect class="{kind}" x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        'rx="6"/>',
        _text(centre, top + 20, _shortened(f"Δ{node.id}")),
        _text(centre, top + 36, f"level {node.level}, {_about(node)}", "small"),
    ]


def _about(node: NodeExplanation) -> str:
    if node.rows is None:
        return node.kind
    screened = ", screened" if node.events or node.checks else ""
    return f"{node.rows} rows{screened}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _text(x: float, y: float, text: str, kind: str = "name") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
