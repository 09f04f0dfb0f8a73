"""Statements of the same shape are parsed once.

The shape of a statement is its text with the constants and the interface variables cut out:
`set quantity(:a) = 5` and `set quantity(:b) = 7` are both `set quantity(:?) = ?i`. The tree of a
shape says by slots where the parts that were cut out belong.

Law: `statements(text)`, with its slots filled again, is `parse(text)`, faults included. Where the
fast cutting here and the grammar could disagree, the grammar decides.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from harken.errors import SyntaxFault
from harken.lang.amosql.literals import integer_value, real_value, string_value, time_value
from harken.lang.amosql.parser import moved_fault, parse, parse_statement
from harken.lang.amosql.syntax import InterfaceVariable, Literal, LiteralValue, Node, Statement
from harken.lang.amosql.tree_walk import descendants, moved, rebuilt

_SHAPES_KEPT = 4096


class Fragment(NamedTuple):
    """A piece of a script that should be one statement, cut out without parsing.

    `shape` is None for a statement that is not kept by its shape. A minus before a number is part
    of the shape: only the parser knows whether it is a sign.
    """

    text: str
    offset: int
    shape: str | None = None
    literals: tuple[LiteralValue, ...] = ()
    variables: tuple[str, ...] = ()


class Parsed(NamedTuple):
    """A statement of a script, and what fills the slots of its tree.

    If `shape` is not None, the tree is shared by all statements of that shape, and its spans are
    those of the first one: `reparse` gives a tree with the spans of this one.
    """

    statement: Statement
    text: str
    offset: int
    literals: tuple[LiteralValue, ...] = ()
    variables: tuple[str, ...] = ()
    shape: str | None = None


def split(text: str) -> list[Fragment]:
    """Cut a script at the semicolons between its statements.

    >>> [fragment.text for fragment in split('print("a;b"); begin commit; end; commit')]
    ['print("a;b")', 'begin commit; end', 'commit']
    """
    fragments = []
    for start, end, _, compound in _cuts(text):
        piece = text[start:end].rstrip()
        shape = None if compound else _shape(piece)
        fragments.append(Fragment(piece, start, *(shape or ())))
    return fragments


def statements(text: str) -> list[Parsed]:
    """Parse a script, each shape at most once."""
    with _no_collection():
        return _statements(text)


def _statements(text: str) -> list[Parsed]:
    found: list[Parsed] = []
    trees: dict[str, _Tree] = {}
    for start, end, stop, compound in _cuts(text):
        piece = text[start:end].rstrip()
        shape, literals, variables = (not compound and _shape(piece)) or _NO_SHAPE
        tree = trees.get(shape) or _recall(shape)
        if tree is None:
            try:
                parsed = parse(text[start:stop])
            except SyntaxFault:
                # Either the text is wrong or the cut is: the parser decides, on all of the rest.
                return found + _unshaped(_parse_rest(text, start), text, start)
            tree = _learn(shape, parsed, piece, start)
            if tree is None:
                found += _unshaped(parsed, text, start)
                continue
        trees[shape] = tree
        if tree.negative:
            literals = _signed(literals, tree.negative)
        found.append(Parsed(tree.statement, piece, start, literals, variables, tree.shape))
    return found


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing made for a script is garbage: to look for it would cost as much as the parsing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def reparse(parsed: Parsed) -> Statement:
    """The statement by itself: no slots, and spans that are true for its place in the script."""
    return parse_statement(parsed.text, parsed.offset)


def filled(parsed: Parsed) -> Statement:
    """The statement with its constants and variables put back into the slots."""

    def fill(node: Node) -> Node:
        if isinstance(node, Literal) and node.slot is not None:
            return replace(node, value=parsed.literals[node.slot], slot=None)
        if isinstance(node, InterfaceVariable) and node.slot is not None:
            return replace(node, name=parsed.variables[node.slot], slot=None)
        return node

    return rebuilt(parsed.statement, fill)


def _parse_rest(text: str, start: int) -> tuple[Statement, ...]:
    try:
        return parse(text[start:])
    except SyntaxFault as fault:
        raise moved_fault(fault, start) from None


def _unshaped(parsed: tuple[Statement, ...], text: str, start: int) -> list[Parsed]:
    trees = [moved(statement, start) for statement in parsed]
    return [Parsed(tree, text[tree.span.start : tree.span.end], tree.span.start) for tree in trees]


# --- cutting a script into statements ------------------------------------------------------

# Nothing here ever needs to take back a part of what it matched, hence the possessive `*+`; but
# not after groups, which Python 3.11 matches wrongly then until 3.11.5.
_COMMENT = r"/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/"
_GAP = rf"(?:[\s\ufeff]++|{_COMMENT})"
_STRING = r""""[^"\\]*+(?:\\[\s\S][^"\\]*+)*"|'[^'\\]*+(?:\\[\s\S][^'\\]*+)*'"""
_TIME = r"\|[^|\n]+\|"
# The semicolon before `else` and `end if` does not end the statement.
_HELD = rf";(?={_GAP}*(?:else|end{_GAP}+if)(?!\w))"
_STATEMENT = re.compile(
    rf"{_GAP}*((?i:create|begin|if|for|delete{_GAP}+rule)(?!\w))?"
    rf"((?:[^;\"'/|]++|{_STRING}|/(?!\*)|{_COMMENT}|\|\||{_TIME}|\||(?i:{_HELD}))*)(;?)"
)
_BEGIN = rf"(?<![\w.:])begin(?!\w)(?!{_GAP}*[(.,)=])"
_END = rf"(?<![\w.:])end(?!\w)(?!{_GAP}+if(?!\w))(?!{_GAP}*[-+*/<>(.,)=])"
_OPENING = re.compile(_BEGIN, re.IGNORECASE)
_BLOCKS = re.compile(
    rf"{_STRING}|{_GAP}+|\|\||{_TIME}|{_HELD}|({_BEGIN})|({_END})|(;)", re.IGNORECASE
)


def _cuts(text: str) -> Iterator[tuple[int, int, int, bool]]:
    """Where statements begin and end, where the text goes on, and whether they are compound.

    A compound statement holds others, or creates things or deletes rules; it is not worth a shape.
    """
    position, size, balanced = 0, len(text), True
    while position < size:
        match = _STATEMENT.match(text, position)
        assert match is not None  # every part of the pattern may be empty
        start, end = match.span(2)
        position = match.end()
        compound = match[1] is not None
        if compound:
            start = match.start(1)
            if balanced and _OPENING.search(text, start, end):
                end, position, balanced = _block(text, start, end, position)
        if position == end < size:
            end = position = size  # a string or a comment is not closed
        if start < end:
            yield start, end, position, compound


def _block(text: str, start: int, end: int, stop: int) -> tuple[int, int, bool]:
    """Where a statement with `begin` in it ends; if nowhere, at its first semicolon after all."""
    depth = 0
    for match in _BLOCKS.finditer(text, start):
        kind = match.lastindex
        if kind == 1:
            depth += 1
        elif kind == 2:
            depth -= 1
        elif kind == 3 and depth <= 0:
            return match.start(), match.end(), True
    return (len(text), len(text), True) if depth <= 0 else (end, stop, False)


# --- cutting the constants out of a statement ----------------------------------------------

# All that is cut out begins with one of a few characters. Taking that character first, and only
# then asking which it was, lets the search run over everything else at full speed. The number
# after `priority` stays: it is part of the node that activates the rule, not a constant in it.
_CUT_OUT = re.compile(
    r"""([:"'0-9.|#/?](?:(?<=:)[^\W\d]\w*+"""
    r"|(?<=[0-9.])(?<![\w.].)(?<!(?i:priority)\s.)(?:(?<=\.)[0-9]++|(?<=[0-9])[0-9]*+(?:\.[0-9]++)?)"
    r"(?:[eE][+-]?[0-9]++)?(?![\w.])"
    r"""|(?<=")[^"\\]*+(?:\\[\s\S][^"\\]*+)*"|(?<=')[^'\\]*+(?:\\[\s\S][^'\\]*+)*'"""
    r"|(?<=\|)\||(?<=\|)[^|\n]++\||(?<=\#)'[^']*+'"
    r"|(?<=/)\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/|(?<=\?)))"
)
_FIRST_OF_CONSTANTS = frozenset("0123456789.\"'|")

_Shape: TypeAlias = tuple[str, tuple[LiteralValue, ...], tuple[str, ...]]
_NO_SHAPE: _Shape = ("", (), ())


def _shape(text: str) -> _Shape | None:
    """The shape of a statement and what was cut out; None if a constant is not as it should be.

    >>> _shape("add f(:x)  =  -1 /* one */")
    ('add f(:?) = -?i', (1,), ('x',))
    """
    pieces = _CUT_OUT.split(text)
    literals: list[LiteralValue] = []
    variables: list[str] = []
    for index in range(1, len(pieces), 2):
        piece = pieces[index]
        first = piece[0]
        if first == ":":
            variables.append(piece[1:])
            pieces[index] = ":?"
        elif first in _FIRST_OF_CONSTANTS and piece != "||":
            try:
                pieces[index], value = _constant(piece)
            except SyntaxFault:
                return None
            literals.append(value)
        elif first == "/":
            pieces[index] = " "
        elif first == "?":
            return None  # nobody may write what stands for a constant
    return " ".join("".join(pieces).split()), tuple(literals), tuple(variables)


def _constant(token: str) -> tuple[str, LiteralValue]:
    """What stands for a constant in a shape, by its type, and its value."""
    if token.isdecimal():
        return "?i", int(token) if len(token) < 19 else integer_value(token)
    if token[0] in "\"'":
        return "?s", string_value(token)
    if token[0] != "|":
        return "?r", real_value(token)
    value = time_value(token)
    return "?t" if isinstance(value, datetime.datetime) else "?d", value


# --- the trees of the shapes ---------------------------------------------------------------


class _Tree(NamedTuple):
    """The tree of a shape, and the slots whose numbers have a minus sign before them."""

    shape: str
    statement: Statement
    negative: tuple[int, ...]


known_shapes: OrderedDict[str, _Tree] = OrderedDict()
_keeping = threading.Lock()


def _recall(shape: str) -> _Tree | None:
    with _keeping:
        tree = known_shapes.get(shape)
        if tree is not None:
            known_shapes.move_to_end(shape)
    return tree


def _learn(shape: str, parsed: tuple[Statement, ...], text: str, start: int) -> _Tree | None:
    """Keep the tree of a shape; None if it does not have all that was cut out of its text."""
    if not shape or len(parsed) != 1:
        return None
    slots = _slots(text)
    try:
        numbered = _numbered(parsed[0], slots)
    except KeyError:
        return None
    if slots:
        return None
    literals = [node for node, _ in descendants(numbered) if isinstance(node, Literal)]
    signed = [n.slot for n in literals if n.slot is not None and text[n.span.start] == "-"]
    tree = _Tree(shape, moved(numbered, start), tuple(signed))
    with _keeping:
        known_shapes[shape] = tree
        if len(known_shapes) > _SHAPES_KEPT:
            known_shapes.popitem(last=False)
    return tree


def _slots(text: str) -> dict[int, int]:
    """For each place where a constant or a variable ends, its number among its kind.

    Not where it begins: a sign belongs to the node of a constant, and was not cut out with it.
    """
    slots: dict[int, int] = {}
    literals, variables = itertools.count(), itertools.count()
    for match in _CUT_OUT.finditer(text):
        if match[0][0] == ":":
            slots[match.end()] = next(variables)
        elif match[0][0] in _FIRST_OF_CONSTANTS and match[0] != "||":
            slots[match.end()] = next(literals)
    return slots


def _numbered(statement: Statement, slots: dict[int, int]) -> Statement:
    """The tree with its slots, which are taken out of `slots`."""

    def number(node: Node) -> Node:
        if isinstance(node, InterfaceVariable):
            return replace(node, slot=slots.pop(node.span.end))
        if isinstance(node, Literal) and not isinstance(node.value, bool):
            return replace(node, slot=slots.pop(node.span.end))
        return node

    return rebuilt(statement, number)


def _signed(literals: tuple[Any, ...], negative: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(-v if slot in negative else v for slot, v in enumerate(literals))
