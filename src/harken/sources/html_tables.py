"""Tables of HTML as rows of texts.

A cell that spans several rows or columns counts in each of them. The heading is the rows of THEAD,
or else the rows at the beginning that have nothing but TH; headings above each other are joined.

Law: all rows of a grid have the same length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.typed_rows import column_name, distinct_names

MOST_SPAN = 1_000
"""Rows or columns of one cell, as in browsers."""
MOST_COLUMNS = 1_000
MOST_CELLS = 5_000_000
CELLS = ("td", "th")


@dataclass(frozen=True, slots=True)
class Grid:
    heading: tuple[tuple[LexborNode | None, ...], ...]
    rows: tuple[tuple[LexborNode | None, ...], ...]
    width: int

    def names(self) -> list[str]:
        """The columns by their headings; numbers where there is none."""
        texts = []
        for place in range(self.width):
            cells = [text_of(row[place]) for row in self.heading]
            texts.append(" ".join(dict.fromkeys(each for each in cells if each)))
        return distinct_names([column_name(text, i) for i, text in enumerate(texts, 1)])


def text_of(node: LexborNode | None) -> str | None:
    """The text of an element as people see it, in one line; None if it has none."""
    if node is None:
        return None
    parts: list[str] = []
    _collect(node, parts)
    return " ".join("".join(parts).split()) or None


_BREAKS = frozenset(
    {"br", "p", "div", "li", "tr", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6"}
)
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head"})


def _collect(node: LexborNode, parts: list[str]) -> None:
    """Goes through the tree without recursion, for pages nest as deep as they like."""
    stack: list[LexborNode | str] = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            parts.append(each)
            continue
        tag = each.tag or ""
        if tag == "-text":
            parts.append(each.text_content or "")
            continue
        if tag in _UNSEEN or tag.startswith(("-", "!")):
            continue
        if tag in _BREAKS:
            parts.append(" ")
            stack.append(" ")
        stack.extend(reversed(list(each.iter(include_text=True))))


def grid_of(table: LexborNode, has_heading: bool | None) -> Grid:
    """`has_heading` None looks for it."""
    found, kinds = _spread(list(_rows_of(table)))
    width = max(map(len, found), default=0)
    padded = [(*row, *([None] * (width - len(row)))) for row in found]
    above = _heading_rows(kinds) if has_heading is None else int(has_heading)
    return Grid(tuple(padded[:above]), tuple(padded[above:]), width)


def _heading_rows(kinds: Sequence[str]) -> int:
    if "head" in kinds:
        return next((i for i, kind in enumerate(kinds) if kind != "head"), len(kinds))
    return next((i for i, kind in enumerate(kinds) if kind != "titles"), len(kinds))


def _rows_of(table: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """The rows of this table, not of those in its cells, and whether they are in its THEAD."""
    for part in table.iter():
        if part.tag == "tr":
            yield part, False
        elif part.tag in ("thead", "tbody", "tfoot"):
            for row in part.iter():
                if row.tag == "tr":
                    yield row, part.tag == "thead"


def _spread(
    rows: Sequence[tuple[LexborNode, bool]],
) -> tuple[list[tuple[LexborNode | None, ...]], list[str]]:
    """The cells of each row at their places, and what kind of row it is."""
    found: list[tuple[LexborNode | None, ...]] = []
    kinds: list[str] = []
    open_cells: dict[int, tuple[LexborNode, int]] = {}
    cells_read = 0
    for row, in_head in rows:
        check()
        own = [cell for cell in row.iter() if cell.tag in CELLS]
        if not own:
            continue
        placed, open_cells = _placed(own, open_cells)
        cells_read += len(placed)
        if len(placed) > MOST_COLUMNS or cells_read > MOST_CELLS:
            raise SourceFault("a table of the page is too large", code="source-suspect")
        found.append(placed)
        titles = all(cell.tag == "th" for cell in own)
        kinds.append("head" if in_head else "titles" if titles else "row")
    return found, kinds


def _placed(
    own: Sequence[LexborNode], above: dict[int, tuple[LexborNode, int]]
) -> tuple[tuple[LexborNode | None, ...], dict[int, tuple[LexborNode, int]]]:
    """The cells of one row, with those from rows above that reach into it."""
    placed: dict[int, LexborNode] = {}
    below: dict[int, tuple[LexborNode, int]] = {}
    for place, (cell, rows_left) in above.items():
        placed[place] = cell
        if rows_left > 1:
            below[place] = (cell, rows_left - 1)
    place = 0
    for cell in own:
        while place in placed:
            place += 1
        down = _span(cell, "rowspan")
        for _ in range(_span(cell, "colspan")):
            placed[place] = cell
            if down > 1:
                below[place] = (cell, down - 1)
            place += 1
            if place > MOST_COLUMNS:
                break
    width = max(placed, default=-1) + 1
    return tuple(placed.get(i) for i in range(width)), below


def _span(cell: LexborNode, name: str) -> int:
    given = cell.attributes.get(name) or "1"
    digits = given.strip()
    return min(max(int(digits), 1), MOST_SPAN) if digits.isdecimal() and len(digits) < 9 else 1
