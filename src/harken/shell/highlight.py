"""The colours of AMOSQL, for the shell and the demonstration."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

KEYWORDS = tuple(
    """
    add and as bag begin call commit create declare delete distinct do each else end false for
    foreign from function if in instances not of or print properties remove return rollback select
    set stored subtype then to true type where work
    """.split()
)
TYPES = ("boolean", "charstring", "date", "integer", "number", "object", "real", "timestamp")


class AmosqlLexer(RegexLexer):
    name = "AMOSQL"
    aliases: ClassVar[list[str]] = ["amosql"]
    filenames: ClassVar[list[str]] = ["*.amosql"]
    tokens: ClassVar[dict[str, list[tuple[object, object]]]] = {
        "root": [
            (r"\s+", Text),
            (r"/\*(?:.|\n)*?\*/", Comment.Multiline),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"'(?:\\.|[^'\\])*'", String),
            (r"\|[^|\n]+\|", Number.Date),
            (r":[^\W\d]\w*", Name.Variable),
            (r"(?:\d*\.)?\d+(?:[eE][+-]?\d+)?", Number),
            (words(TYPES, prefix=r"(?i)\b", suffix=r"\b"), Keyword.Type),
            (words(KEYWORDS, prefix=r"(?i)\b", suffix=r"\b"), Keyword),
            (r"[^\W\d]\w*(?=\s*\()", Name.Function),
            (r"[^\W\d]\w*", Name),
            (r"->|[-+*/<>=!|]+", Operator),
            (r"[(),;.]", Punctuation),
            (r".", Text),
        ]
    }
