"""Random regular expressions of Java, and texts that they have a chance to match."""

from __future__ import annotations

from random import Random

ATOMS = (
    *("a", "b", "B", "K", "s", "é", "☃", "-", "_", " ", ".", r"\.", r"\n", r"\r", r"\t", "7"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", "^", "$", r"\Z", r"\z", r"\A"),
    *("[Kk]", "[ab]", "[^ab]", "[a-f7-]", r"[\d_]", r"[^\s]", r"[\W]", r"[\D7]", "[-b]", r"[K\-]"),
    *(r"\p{Lower}", r"\P{Upper}", r"[\p{Punct}a]", r"\x61", r"☃", r"\Qa.\E", r"\u000b"),
)
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{2,}", "++", "?+")
GROUPS = ("(", "(", "(?:", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?>", "(?i:")
LOOKING = ("(?=", "(?!", "(?<=")
PIECES = ("a", "b", "B", "k", "K", "S", "\u017f", "\u212a", "é", "É", "☃", "-", "_", " ", ".", "7")
LINE_ENDS = ("\n", "\r", "\r\n", "\u0085", "\u2028", "\x0b")
FLAGS = ("", "", "", "(?i)", "(?s)", "(?is)")


def random_pattern(random: Random) -> str:
    return random.choice(FLAGS) + _alternatives(random, depth=3)


def _alternatives(random: Random, depth: int) -> str:
    return "|".join(_sequence(random, depth) for _ in range(random.choice((1, 1, 1, 2, 3))))


def _sequence(random: Random, depth: int) -> str:
    return "".join(_repeated(random, depth) for _ in range(random.choice((0, 1, 1, 2, 3))))


def _repeated(random: Random, depth: int) -> str:
    if depth and random.random() < 0.4:
        group = random.choice(GROUPS)
        # What a group in a lookaround that failed holds, depends on how Java was written.
        inside = depth - 1 if group not in LOOKING else 0
        atom = group + _alternatives(random, inside) + ")"
    else:
        atom = random.choice((*ATOMS, r"\1")) if depth < 3 else random.choice(ATOMS)
    return atom + (random.choice(REPEATS) if random.random() < 0.35 else "")


def random_text(random: Random) -> str:
    pieces = random.choices((*PIECES, *LINE_ENDS), k=random.randrange(7))
    return "".join(pieces) + random.choice(("", "", *LINE_ENDS))
