"""The words of a Datalog text, each with its place.

A directive (`.decl`) is a word of its own, so that the dot that ends a clause is never taken for
the beginning of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harken.errors import LanguageError, Span, SyntaxFault

DIRECTIVES = (
    "decl",
    "type",
    "input",
    "output",
    "printsize",
    "limitsize",
    "pragma",
    "plan",
    "strict",
    "comp",
    "init",
    "override",
    "functor",
    "lattice",
    "include",
    "once",
    "number_type",
    "symbol_type",
    "monitor",
    "commit",
    "priority",
    "semantics",
    "timestamps",
    "refraction",
    "resolution",
    "run",
    "activate",
    "deactivate",
)

_TOKEN = re.compile(
    rf"""
      (?P<blank> \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<open_comment> /\* )
    | (?P<directive> \.(?:{"|".join(DIRECTIVES)})(?![\w?]) )
    | (?P<address> \d+(?:\.\d+){{3}}(?!\w) )
    | (?P<float> \d+\.\d+(?:[eE][+-]?\d+)? )
    | (?P<unsigned> (?:0x[0-9a-fA-F]+|0b[01]+|\d+)u(?!\w) )
    | (?P<integer> (?:0x[0-9a-fA-F]+|0b[01]+|\d+)(?!\w) )
    | (?P<text> "(?:\\.|[^"\\\n])*" )
    | (?P<symbol> :-|\?-|->|<=|>=|!=|<:|[-+*/%^=<>!,.;:(){{}}\[\]|@$&] )
    | (?P<name> [A-Za-z_?][A-Za-z0-9_?]* )
    | (?P<preprocessor> \# )
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPES = {**_CONTROLS, '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is directive, address, float, unsigned, integer, text, symbol, name or end."""

    kind: str
    text: str
    span: Span


def tokens(text: str) -> list[Token]:
    """All words, and one of the kind `end` behind the last.

    >>> [token.text for token in tokens("p(x) :- q(x, 1.5). // why")]
    ['p', '(', 'x', ')', ':-', 'q', '(', 'x', ',', '1.5', ')', '.', '']
    """
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _strange(text, place)
        kind, span = match.lastgroup or "", Span(place, match.end())
        if kind == "preprocessor":
            raise unsupported("the preprocessor (#define, #include)", span, "write it out")
        if kind == "open_comment":
            raise SyntaxFault("this comment does not end", span=span, hint="close it with */")
        if kind != "blank":
            found.append(Token(kind, match[0], span))
        place = match.end()
    return [*found, Token("end", "", Span(len(text), len(text)))]


def _strange(text: str, place: int) -> SyntaxFault:
    span = Span(place, place + 1)
    if text[place] == '"':
        return SyntaxFault("this text does not end", span=span, hint='close it with "')
    if text[place].isdigit():
        return SyntaxFault("this is no number", span=span, hint="write 12, 12u, 0x1f, 0b101 or 1.5")
    hints = {"'": 'texts are in double quotes: "a"', "\\": "not is !, and unequal is !="}
    return SyntaxFault(
        f"the character {text[place]} means nothing here", span=span, hint=hints.get(text[place])
    )


def text_value(token: Token) -> str:
    """The string between the quotes, with its escapes resolved."""
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[0]), token.text[1:-1])


def unsupported(what: str, span: Span, hint: str | None = None) -> LanguageError:
    """Soufflé has it, and Harken has not."""
    return LanguageError(
        f"{what}: this part of Soufflé is not in Harken's Datalog",
        code="unsupported",
        span=span,
        hint=hint,
    )
