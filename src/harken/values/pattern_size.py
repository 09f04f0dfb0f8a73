"""How long a pattern is once its repetitions are written out, found before it is compiled.

Engines copy what must be repeated: `(a{100}){100}` takes the memory and the time of 10,000
characters, and each further level of nesting multiplies that again. What may be repeated, as in
`a{0,100}` or `a*`, is a loop, which takes one copy; `a+` takes two.

Law: a pattern that passes `check` has at most `MOST` characters when written out.
"""

from __future__ import annotations

import math
import re

from harken.errors import EvaluationError

MOST = 10_000
"""Characters of a pattern with its repetitions written out. The slowest of that length, such as
`x?x?x?...`, are compiled in about a second."""
DEEPEST = 100
"""Groups inside each other. The time to compile grows with the square of the depth."""
SHOWN = 80
"""Characters of a pattern that an error quotes."""

_PIECE = re.compile(
    r"\\Q.*?(?:\\E|\Z)"
    r"|\\(?:[pPuUxN]\{[^}]*\}|.)"
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\\\]])*\]?"
    r"|\{(?P<least>[0-9]+)(?P<more>,[0-9]*)?\}"
    r"|.",
    re.DOTALL,
)


def shown(pattern: str) -> str:
    """
    >>> len(shown("x" * 1000))
    80
    """
    return pattern if len(pattern) <= SHOWN else pattern[: SHOWN - 3] + "..."


def check(pattern: str) -> None:
    if not fits(pattern):
        raise EvaluationError(
            f"the pattern '{shown(pattern)}' is too large",
            code="too-complex",
            hint=f"with its repetitions written out it may have {MOST:,} characters, and "
            f"{DEEPEST} groups inside each other",
        )


def fits(pattern: str) -> bool:
    """
    >>> fits("((a{9}){9}){9}"), fits("((a{99}){99}){99}"), fits("(" * 200)
    (True, False, False)
    """
    return len(pattern) <= MOST and size(pattern) <= MOST


def size(pattern: str) -> float:
    """Characters, with what must be repeated written out; infinite if groups are nested too deep.

    >>> size("ab{3}"), size("(ab){3}"), size("(a{10}){10}"), size("a{0,1000}"), size(r"[{9}]\\{9}")
    (7, 15, 164, 9, 9)
    """
    outer: list[int] = []
    total = last = 0
    """Of the group being read, and of what a repetition that follows is about."""
    for piece in _PIECE.finditer(pattern):
        text = piece[0]
        if text == "(":
            outer.append(total)
            total, last = 1, 0
            if len(outer) > DEEPEST:
                return math.inf
        elif text == ")" and outer:
            last = total + 1
            total = outer.pop() + last
        elif piece["least"] is not None or text in ("*", "+", "?"):
            added = last * (_copies(piece) - 1) + len(text)
            total, last = total + added, last + added
        else:
            last = len(text)
            total += last
    return sum(outer) + total


def _copies(repetition: re.Match[str]) -> int:
    """Those that must be there, and one for the loop over the rest: `a+` is `aa*`."""
    least, more = repetition["least"], repetition["more"]
    if least is None:
        return 2 if repetition[0] == "+" else 1
    return max(1, min(int(least[:10]), MOST) + (more is not None))
