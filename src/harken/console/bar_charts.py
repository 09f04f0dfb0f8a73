"""Small charts as SVG, made on the server: each answers one question."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT, BOTTOM, TOP = 640, 120, 20, 18
MOST_BARS = 60


def bars(title: str, values: Sequence[float], labels: Sequence[str]) -> Markup:
    """Bars from zero, with the largest value and the first and last label written beside them."""
    values, labels = values[-MOST_BARS:], labels[-MOST_BARS:]
    most = max([*values, 0]) or 1
    room = HEIGHT - BOTTOM - TOP
    step = WIDTH / max(len(values), 1)
    parts = []
    for index, value in enumerate(values):
        height = room * max(value, 0) / most
        parts.append(
            Markup(
                '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
                "<title>{}: {}</title></rect>"
            ).format(
                index * step + step * 0.15,
                HEIGHT - BOTTOM - height,
                step * 0.7,
                height,
                labels[index],
                number(value),
            )
        )
    largest = max(range(len(values)), key=lambda index: values[index], default=None)
    if largest is not None:
        parts.append(
            Markup('<text x="{:.1f}" y="12" text-anchor="middle">{}</text>').format(
                min(max((largest + 0.5) * step, 20), WIDTH - 20), number(values[largest])
            )
        )
        parts.append(Markup('<text x="0" y="{}">{}</text>').format(HEIGHT - 4, labels[0]))
        if len(labels) > 1:
            parts.append(
                Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                    WIDTH, HEIGHT - 4, labels[-1]
                )
            )
    line = Markup('<line x1="0" x2="{}" y1="{}" y2="{}"/>').format(
        WIDTH, HEIGHT - BOTTOM, HEIGHT - BOTTOM
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>'
    ).format(WIDTH, HEIGHT, title, Markup("").join(parts), line)


def number(value: float) -> str:
    """
    >>> number(36000005.0), number(0.25)
    ('36,000,005', '0.25')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"
