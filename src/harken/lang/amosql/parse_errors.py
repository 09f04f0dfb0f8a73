"""Why a text does not parse, in words: what was found, what was expected, what to write.

Works from the state of the parser just before the token it stopped at, so that what is called
expected really would have been accepted there.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from harken.errors import Span, SyntaxFault, nearest
from harken.lang.amosql.literals import shown
from harken.lang.amosql.sql_habits import sql_habit_fault


def _kinds(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VALUES = _kinds("NAME VARIABLE INTEGER REAL STRING TIME TRUE FALSE REFERENCE LPAR LESS MINUS NOT")
_STATEMENTS = _kinds(
    "CREATE DELETE ADD REMOVE SET SELECT CALL PRINT BEGIN DECLARE IF FOR RETURN COMMIT ROLLBACK "
    "ACTIVATE DEACTIVATE CHECK"
)
_EVENTS = _kinds("ADDED REMOVED UPDATED CREATED DELETED SIGNAL EVERY AT AFTER INTEGER LPAR NOT")
_MODES = _kinds("STRICT NERVOUS PATIENT DEFERRED IMMEDIATE BEFORE DETACHED DECOUPLED")
_COMPARISONS = _kinds(
    "EQUAL DOUBLE_EQUAL NOT_EQUAL LESS_GREATER LESS LESS_EQUAL GREATER GREATER_EQUAL IN"
)
_OPERATORS = _COMPARISONS | _kinds("PLUS MINUS CONCATENATE STAR SLASH AND OR")
# What may begin a statement, without the brackets and signs that rather go on with an expression,
# but with the words that are names at the beginning of one.
_STARTERS = _STATEMENTS | _VALUES - _kinds("LPAR LESS MINUS")
_STARTERS |= _MODES | _kinds("RULE OLD_RULE ON WHEN ADDED REMOVED UPDATED PRIORITY")
# What comes directly before a statement inside another one.
_OPENERS = _kinds("BEGIN THEN ELSE DO AS")
# Words that, read as a name, are more likely a clause in the wrong place.
_CLAUSES = _kinds("for each where and or in then else do end from to as of not select")
# A token of each group tells whether the whole group is expected.
_GROUPS = (
    ("SIGNAL", "an event such as `added`, `removed` or `updated`", _EVENTS),
    ("COMMIT", "a statement", _STATEMENTS | _VALUES),
    ("STRING", "a value", _VALUES | {"SELECT"}),
    ("NERVOUS", "a rule's option", _MODES),
    ("PLUS", "an operator", _OPERATORS | {"LPAR", "DOT"}),
)
_LAST = ("a rule's option", "an operator")
_WORDS = {
    "NAME": "a name",
    "FREE_NAME": "a name",
    "VARIABLE": "a variable such as `:x`",
    "INTEGER": "a number",
    "REAL": "a number",
    "STRING": "a string",
    "SEMICOLON": "`;`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "ARROW": "`->`",
    "EQUAL": "`=`",
    "LESS": "`<`",
    "GREATER": "`>`",
    "FOR": "`for each`",
    "SUBTYPE": "`subtype of`",
    "BAG": "`bag of`",
    "END_IF": "`end if`",
    "OLD_RULE": "`rule`",
}
_MOST = 5

_FORMS = {
    "create type": "create type employee subtype of person properties (income number);",
    "create function": "create function threshold(item i) -> integer as select min_stock(i) + 40;",
    "create rule": "create rule low(item i) as when quantity(i) < 100 do order(i, 50);",
    "create": 'create item(name) instances :shoelaces("Shoelaces");',
    "delete": "delete :shoelaces; or delete type item; or delete rule low;",
    "add": "add teacher to :amos; or add supplies(:sup) = :item;",
    "remove": "remove teacher from :amos; or remove supplies(:sup) = :item;",
    "set": "set quantity(:shoelaces) = 100;",
    "select": "select name(i) for each item i where quantity(i) < 100;",
    "call": "call order(:shoelaces, 50);",
    "print": "print(name(i), quantity(i));",
    "begin": "begin set quantity(i) = 0; set min_stock(i) = 5; end;",
    "declare": "declare integer n, item i;",
    "if": 'if quantity(i) < 100 then order(i, 50) else print("enough");',
    "for": "for each item i where quantity(i) < 100 do order(i, 50);",
    "activate": "activate low(:shoelaces) priority 3;",
    "deactivate": "deactivate low(:shoelaces);",
    "return": "return quantity(i) * 2;",
    "commit": "commit;",
    "rollback": "rollback;",
}
_FORMS |= {f"create {mode.lower()}": _FORMS["create rule"] for mode in _MODES}

_CHARACTERS = {
    "!": "`not equal` is written != and negation is written not",
    "&": "write and",
    "%": "there is no remainder operator: write mod(a, b)",
    ":": "an interface variable is a colon with its name directly after it, as in :x",
    "#": "a function itself is written #'name', and comments stand between /* and */",
    "|": "a time is written |2026-11-15/08:30:00|, and strings are joined by ||",
    ".": "a dot stands between a type and a function, or inside a number with a digit after it",
}
_CHARACTERS |= dict.fromkeys("“”„‘’´`«»", "strings are written between straight quotes, \" or '")
_CHARACTERS |= dict.fromkeys("[]{}", "only ( ) and < > are used as brackets")

_LEADING_SEMICOLON = re.compile(r";(?:[\s\ufeff]++|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/)*")
_NUMBER_LIKE = re.compile(r"[0-9][\w.]*|\.[0-9][\w.]*")


def explain(grammar: Lark, text: str, error: UnexpectedInput) -> SyntaxFault:
    """The fault a person should see for an error of the parser."""
    place = _place(grammar, text, error)
    known = sql_habit_fault(text, place.statement, place.position)
    if known is not None:
        return known
    if place.found is None:
        return _bad_character(text, place.position)
    return _without_rule(place) or _misspelt(place) or _run_on(place) or _unexpected(place)


@dataclass
class _Place:
    """Where the parser stopped.

    `found` is the token that was too much, None for a character that begins no token; `accepted`
    what could have come instead. `statement` holds the tokens before, from the first of the
    innermost statement. `misread` is the last of them if it is a clause's word taken for a name,
    with what could have come instead of that.
    """

    position: int
    found: Token | None
    end_of_previous: int = 0
    accepted: set[str] = field(default_factory=set)
    statement: list[Token] = field(default_factory=list)
    misread: tuple[Token, set[str]] | None = None

    def pass_over(self, token: Token) -> None:
        if self.statement and self._opens(self.statement[-1]):
            self.statement.clear()
        self.statement.append(token)
        if token.type == "SEMICOLON":
            self.statement.clear()
        self.end_of_previous = token.end_pos or 0

    def _opens(self, token: Token) -> bool:
        """Whether a statement follows; after the `as` of a rule, the rule itself goes on."""
        if token.type == "AS":
            return all(earlier.type != "RULE" for earlier in self.statement)
        return token.type in _OPENERS


def _place(grammar: Lark, text: str, error: UnexpectedInput) -> _Place:
    """Parse again, and stop before the token that was too much.

    The first parse has reduced rules for that token already, and no longer knows all that could
    have come instead of it.
    """
    found = error.token if isinstance(error, UnexpectedToken) else None
    at_end = found is not None and found.type == "$END"
    place = _Place(len(text) if at_end else error.pos_in_stream or 0, found)
    parser: Any = grammar.parse_interactive(text)
    with contextlib.suppress(UnexpectedInput):
        for token in parser.lexer_thread.lex(parser.parser_state):
            if (token.start_pos or 0) >= place.position:
                break
            misread = token.type == "NAME" and token.lower() in _CLAUSES
            place.misread = (token, parser.accepts()) if misread else None
            parser.feed_token(token)
            place.pass_over(token)
    place.accepted = parser.accepts()
    return place


def _without_rule(place: _Place) -> SyntaxFault | None:
    """Without a name after it, `activate` was read as a name itself."""
    words = [token.lower() for token in place.statement]
    if words not in (["activate"], ["deactivate"]):
        return None
    return SyntaxFault(
        f"the name of a rule was expected after `{words[0]}`",
        span=_span(place.statement[0]),
        hint=f"for example: {_FORMS[words[0]]}",
    )


def _misspelt(place: _Place) -> SyntaxFault | None:
    if place.misread or [token.type for token in place.statement] != ["NAME"]:
        return None
    meant = nearest(place.statement[0], (word.lower() for word in _STATEMENTS))
    if meant is None:
        return None
    word = place.statement[0]
    return SyntaxFault(
        f"no statement begins with {shown(word)}", span=_span(word), hint=f"did you mean `{meant}`?"
    )


def _run_on(place: _Place) -> SyntaxFault | None:
    found = place.found
    if found is None or place.misread or "SEMICOLON" not in place.accepted:
        return None
    if found.type not in _STARTERS:
        return None
    meant = nearest(found, (word.lower() for word in place.accepted if word.isalpha()))
    return SyntaxFault(
        f"a `;` is missing before {shown(found)}",
        code="missing-semicolon",
        span=Span(place.end_of_previous, place.end_of_previous),
        hint="statements are separated by `;`" + (f"; or did you mean `{meant}`?" if meant else ""),
    )


def _unexpected(place: _Place) -> SyntaxFault:
    found, accepted = place.misread or (place.found, place.accepted)
    expected = _listed(_expected(accepted))
    if found is None or found.type == "$END":
        span = Span(place.end_of_previous, place.end_of_previous)
        message = f"the text ends where {expected} was expected"
    else:
        span = _span(found)
        message = f"found {shown(_word(found))} where {expected} was expected"
    return SyntaxFault(message, span=span, hint=_hint(place))


def _span(token: Token) -> Span:
    end = token.end_pos or 0
    return Span(end - len(_word(token)), end)


def _word(token: Token) -> str:
    """The token's text, without the `;` that `else` and `end if` may bring along."""
    return _LEADING_SEMICOLON.sub("", token) if token.type in ("ELSE", "END_IF") else str(token)


def _expected(accepted: set[str]) -> list[str]:
    """What was expected, in words, the most telling first."""
    words, rest = [], set(accepted)
    if "GREATER" in rest and "EQUAL" not in rest:
        words.append("`>`")  # it closes a tuple here, and compares nothing
    for sign, group, members in _GROUPS:
        if sign in rest:
            words.append(group)
            rest -= members
    if "SEMICOLON" in rest:
        rest.discard("$END")
    words += sorted({_WORDS.get(name, f"`{name.lower()}`") for name in rest})
    words.sort(key=lambda word: word in _LAST)
    return words[:_MOST]


def _listed(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _hint(place: _Place) -> str:
    closing = place.found is not None and place.found.type in ("$END", "SEMICOLON")
    if closing and "RPAR" in place.accepted:
        return "a `(` is still open; close it with `)`"
    if closing and "END" in place.accepted:
        return "a `begin` is still open; close it with `end`"
    if place.found is not None and place.found.type in _COMPARISONS and "AND" in place.accepted:
        return "comparisons do not chain; write a = b and b = c"
    words = [token.lower() for token in place.statement[:2]]
    if not words:
        return "a statement begins with create, set, select, for each and the like, or is a call"
    form = _FORMS.get(" ".join(words)) or _FORMS.get(words[0])
    if form:
        return f"for example: {form}"
    return "a value is a constant, a name, :x, f(x), or several of these joined by operators"


def _bad_character(text: str, position: int) -> SyntaxFault:
    rest = text[position : position + 100]
    if rest[0] in "\"'":
        message, length = "this string is never closed", 1
        hint = f"end it with {rest[0]}; inside a string, write that character as \\{rest[0]}"
    elif rest.startswith("/*"):
        message, length, hint = "this comment is never closed", 2, "end it with */"
    elif match := _NUMBER_LIKE.match(rest):
        message, length = f"{shown(match[0])} is neither a number nor a name", len(match[0])
        hint = "numbers look like 12, 1.5 or 1e3, and a name does not begin with a digit"
    else:
        message, length = f"the character {shown(rest[0])} cannot stand here", 1
        hint = _CHARACTERS.get(rest[0], "it has no meaning outside strings and comments")
    return SyntaxFault(message, span=Span(position, position + length), hint=hint)
