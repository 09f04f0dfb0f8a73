"""From text to syntax tree.

`parse` gives statements, or raises a SyntaxFault whose span lies inside the text: no other
exception leaves this module, whatever the text.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedInput

from harken.errors import Span, SyntaxFault
from harken.lang.amosql.builder import Builder, too_deep
from harken.lang.amosql.parse_errors import explain
from harken.lang.amosql.syntax import Statement
from harken.lang.amosql.tree_walk import moved


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a script.

    >>> parse("commit; rollback work;")
    (Commit(), Rollback())
    """
    try:
        return cast(tuple[Statement, ...], _grammar().parse(text))
    except UnexpectedInput as error:
        raise explain(_grammar(), text, error) from None
    except RecursionError:
        raise too_deep(Span(0, len(text))) from None


def parse_statement(text: str, offset: int = 0) -> Statement:
    """The one statement in a text that stands at `offset` of a script; spans are the script's."""
    try:
        statements = parse(text)
        if len(statements) != 1:
            raise _not_one(text, statements)
    except SyntaxFault as fault:
        raise moved_fault(fault, offset) from None
    return moved(statements[0], offset)


def moved_fault(fault: SyntaxFault, offset: int) -> SyntaxFault:
    """The same fault, with its span `offset` further on."""
    span = fault.span or Span(0, 0)
    span = Span(span.start + offset, span.end + offset)
    return SyntaxFault(fault.message, code=fault.code, span=span, hint=fault.hint)


def _not_one(text: str, statements: tuple[Statement, ...]) -> SyntaxFault:
    if not statements:
        return SyntaxFault("a statement was expected here", span=Span(0, len(text)))
    return SyntaxFault("one statement was expected here, not several", span=statements[1].span)


@functools.cache
def _grammar() -> Lark:
    text = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        start="script",
        parser="lalr",
        lexer="contextual",
        transformer=Builder(),
        keep_all_tokens=True,  # spans are taken from the first and the last child
        maybe_placeholders=False,
    )
