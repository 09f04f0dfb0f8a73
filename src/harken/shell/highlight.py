"""The colours of AMOSQL, for the shell and the demonstration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from rich.text import Text

from harken.lang.amosql.keywords import KEYWORDS
from harken.values.types import ALIASES, LITERAL_TYPES, OBJECT

TYPES = (*LITERAL_TYPES, *ALIASES, OBJECT.name)

_TOKENS = re.compile(
    rf"""
      (?P<comment> /\*.*?(?:\*/|\Z) )
    | (?P<string> "(?:\\.|[^"\\])*"? | '(?:\\.|[^'\\])*'? | \|[^|\n]+\| )
    | (?P<variable> :[^\W\d]\w* )
    | (?P<number> \b(?:\d*\.)?\d+(?:[eE][+-]?\d+)?\b )
    | (?P<type> \b(?:{"|".join(TYPES)})\b )
    | (?P<keyword> \b(?:{"|".join(KEYWORDS)})\b )
    | (?P<call> [^\W\d]\w*(?=\s*\() )
    | (?P<other> \w+ | \W )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

# For each kind of token, its style in rich and in prompt_toolkit.
_STYLES = {
    "comment": ("bright_black", "fg:ansibrightblack"),
    "string": ("green", "fg:ansigreen"),
    "variable": ("yellow", "fg:ansiyellow"),
    "number": ("cyan", "fg:ansicyan"),
    "type": ("magenta", "fg:ansimagenta"),
    "keyword": ("bold blue", "bold fg:ansiblue"),
    "call": ("bright_blue", "fg:ansibrightblue"),
    "other": ("", ""),
}


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Each piece of the text and its kind.

    >>> [kind for kind, piece in tokens('set f(:x) = "a"') if piece.strip()]
    ['keyword', 'call', 'other', 'variable', 'other', 'other', 'string']
    """
    for match in _TOKENS.finditer(text):
        yield match.lastgroup or "other", match[0]


def coloured(text: str) -> Text:
    return Text.assemble(*((piece, _STYLES[kind][0]) for kind, piece in tokens(text)))


class AmosqlLexer(Lexer):
    """Colours the text as it is typed."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        fragments: StyleAndTextTuples = [
            (_STYLES[kind][1], piece) for kind, piece in tokens(document.text)
        ]
        lines = [list(line) for line in split_lines(fragments)]
        return lambda number: lines[number] if number < len(lines) else []
