"""Production rules and the directives of their programs.

    rule r1 [priority 2]: a(x, z), b(x, y) -> c(x, y), !a(x, z).
    .priority r1, r2 > r3
    .semantics instance
    .run limit 1000

`rule` is a word only where a name follows it, so a relation may still have that name. The brackets
around the options of a rule may be left out.
"""

from __future__ import annotations

from harken.errors import LanguageError, NameFault, Span, SyntaxFault, nearest
from harken.lang.datalog import syntax
from harken.lang.datalog.formulas import Formulas
from harken.lang.datalog.token_reader import Reader
from harken.lang.datalog.tokens import Token

SEMANTICS = ("set", "instance")
RESOLUTIONS = ("text", "lex", "mea", "salience")
PRODUCTION_DIRECTIVES = (
    *(".priority", ".semantics", ".timestamps", ".refraction", ".resolution"),
    *(".run", ".activate", ".deactivate"),
)
LARGEST_NUMBER = 10**15
"""The largest priority and the largest limit that can be written."""


class Productions:
    def __init__(self, reader: Reader, formulas: Formulas) -> None:
        self._reader = reader
        self._formulas = formulas

    def is_next(self) -> bool:
        return self._reader.is_word("rule") and self._reader.after().kind == "name"

    # --- rules -----------------------------------------------------------------------------

    def rule(self) -> syntax.ProductionRule:
        reader = self._reader
        start = reader.take()
        name = reader.name("the name of a rule")
        priority, semantics = self._options()
        reader.expect(":", "a production rule is written rule name: body -> head.")
        body = None if reader.is_symbol("->") else self._formulas.disjunction()
        reader.expect("->", "a production rule is written rule name: body -> head.")
        heads = [self._head_literal()]
        while reader.accept(","):
            heads.append(self._head_literal())
        reader.expect(".", "a production rule ends with a dot")
        return syntax.ProductionRule(
            name.text, priority, semantics, body, tuple(heads), reader.since(start)
        )

    def _options(self) -> tuple[int | None, str | None]:
        """`[priority 2, instance]`"""
        reader = self._reader
        in_brackets = reader.accept("[") is not None
        priority, semantics = None, None
        while not reader.is_symbol(":", "]"):
            if reader.is_word("priority", "salience"):
                reader.take()
                priority = self._number("a priority")
            elif reader.is_word(*SEMANTICS):
                semantics = reader.take().text
            else:
                raise reader.unexpected(
                    "an option of the rule", "a rule can have `priority 2`, `set` or `instance`"
                )
            if not reader.accept(","):
                break
        if in_brackets:
            reader.expect("]")
        return priority, semantics

    def _number(self, what: str) -> int:
        reader = self._reader
        start = reader.next
        sign = -1 if reader.accept("-") else 1
        if reader.next.kind != "integer":
            raise reader.unexpected(f"{what}, a whole number,")
        written = reader.take().text
        value = int(written, 0) if len(written) < 20 and not written.startswith("00") else None
        if value is None or value > LARGEST_NUMBER:
            raise LanguageError(
                f"{what} is at most {LARGEST_NUMBER}", code="bad-value", span=reader.since(start)
            )
        return sign * value

    def _head_literal(self) -> syntax.HeadLiteral:
        reader = self._reader
        deletes = reader.accept("!") is not None
        if reader.next.kind != "name":
            raise reader.unexpected(
                "a fact that the rule inserts", "a head has facts: c(x), or !c(x) to delete it"
            )
        return syntax.HeadLiteral(self._formulas.atom(), deletes)

    # --- directives ------------------------------------------------------------------------

    def directive(self, token: Token) -> syntax.Statement:
        reader = self._reader
        match token.text:
            case ".priority":
                return self._priority(token)
            case ".run":
                limit = self._limit()
                return syntax.Run(limit, reader.since(token))
            case ".activate":
                limit = self._limit()
                return syntax.Activation(True, limit, reader.since(token))
            case ".deactivate":
                return syntax.Activation(False, None, token.span)
            case ".timestamps" | ".refraction":
                return syntax.ProgramOption(token.text[1:], "on", (), token.span)
            case ".resolution":
                value = self._one_of("resolution", RESOLUTIONS)
                return syntax.ProgramOption("resolution", value, (), reader.since(token))
        value = self._one_of("semantics", SEMANTICS)
        rules = self._rule_names() if self._names_follow() else ()
        return syntax.ProgramOption("semantics", value, rules, reader.since(token))

    def _names_follow(self) -> bool:
        """Whether names of rules follow, not the head of the next rule or fact."""
        reader = self._reader
        after = reader.after()
        is_rule = reader.is_word("rule") and after.kind == "name"
        begins = after.kind == "symbol" and after.text in ("(", ".")
        return reader.next.kind == "name" and not is_rule and not begins

    def _one_of(self, what: str, known: tuple[str, ...]) -> str:
        reader = self._reader
        token = reader.name(f"{' or '.join(known)}")
        if token.text not in known:
            near = nearest(token.text, known)
            raise NameFault(
                f"there is no {what} {token.text}",
                code="bad-value",
                span=token.span,
                hint=f"did you mean {near}?" if near else f"there are {', '.join(known)}",
            )
        return token.text

    def _rule_names(self) -> tuple[tuple[str, Span], ...]:
        reader = self._reader
        found = [reader.name("the name of a rule")]
        while reader.accept(","):
            found.append(reader.name("the name of a rule"))
        return tuple((each.text, each.span) for each in found)

    def _priority(self, token: Token) -> syntax.Priority:
        """`.priority a, b > c > d`"""
        reader = self._reader
        groups = [self._rule_names()]
        reader.expect(">", "an order is written .priority r1, r2 > r3")
        groups.append(self._rule_names())
        while reader.accept(">"):
            groups.append(self._rule_names())
        return syntax.Priority(tuple(groups), reader.since(token))

    def _limit(self) -> int | None:
        """`limit 1000`, or `[limit 1000]`"""
        reader = self._reader
        in_brackets = reader.is_symbol("[") and reader.accept("[") is not None
        limit = None
        if reader.is_word("limit") and reader.after().kind == "integer":
            reader.take()
            start = reader.next
            limit = self._number("a limit")
            if limit < 1:
                raise SyntaxFault("a limit is at least 1", span=start.span)
        if in_brackets:
            reader.expect("]")
        return limit
