"""The propagation network of a rule as a picture: stored relations below, the condition above, and
on each line the differentials that carry a change upwards."""

from __future__ import annotations

from html import escape

from harken.database.rules.explain import RuleExplanation

BOX_WIDTH, BOX_HEIGHT, GAP, MARGIN = 210, 46, 24, 30
LEVEL_GAP = 150

_STYLE = (
    "text { font: 13px sans-serif; fill: #222; text-anchor: middle } "
    ".small { font-size: 11px; fill: #666 } "
    "rect { fill: #f7f7fb; stroke: #445; stroke-width: 1.2 } "
    ".condition { fill: #eef5ea } "
    "line { stroke: #778; stroke-width: 1.2 }"
)


def draw(explanation: RuleExplanation) -> str:
    """An SVG document."""
    influents = explanation.influents
    width = 2 * MARGIN + max(1, len(influents)) * (BOX_WIDTH + GAP) - GAP
    height = 2 * MARGIN + 2 * BOX_HEIGHT + LEVEL_GAP
    top, bottom = MARGIN, MARGIN + BOX_HEIGHT + LEVEL_GAP
    middle = width / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
    ]
    for number, influent in enumerate(influents):
        left = MARGIN + number * (BOX_WIDTH + GAP)
        centre = left + BOX_WIDTH / 2
        parts.append(f'<line x1="{centre}" y1="{bottom}" x2="{middle}" y2="{top + BOX_HEIGHT}"/>')
        parts += _box(left, bottom, f"Δ{influent.relation}", f"{influent.rows} rows")
        carried = f"{len(influent.gains)} gaining, {len(influent.losses)} losing"
        parts.append(_text(centre, bottom - 14, carried, "small"))
    kind = f"{explanation.semantics}, {explanation.coupling}"
    parts += _box(middle - BOX_WIDTH / 2, top, f"Δcnd_{explanation.name}", kind, "condition")
    return "\n".join([*parts, "</svg>"])


def _box(left: float, top: float, title: str, below: str, kind: str = "stored") -> list[str]:
    centre = left + BOX_WIDTH / 2
    return [
        f'<rect class="{kind}" x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        'rx="6"/>',
        _text(centre, top + 20, title),
        _text(centre, top + 36, below, "small"),
    ]


def _text(x: float, y: float, text: str, kind: str = "name") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
