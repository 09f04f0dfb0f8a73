"""GRANT, REVOKE and SHOW GRANTS.

    GRANT SELECT, INSERT ON sale TO ann, bob
    GRANT NOTIFY ON CHANNEL email TO PUBLIC
    REVOKE ALL ON sale FROM ann
    SHOW GRANTS ON sale · SHOW GRANTS TO ann

sqlglot reads only the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import Span, SyntaxFault

T = TypeVar("T")
NAMES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING)


class Granting(exp.Expression):
    """`verb` is GRANT, REVOKE or SHOW; `objects` are tables, or channels if `on_channel`."""

    arg_types = {  # noqa: RUF012
        "verb": True,
        "privileges": False,
        "objects": False,
        "on_channel": False,
        "accounts": False,
    }

    @property
    def verb(self) -> str:
        return str(self.args["verb"])

    @property
    def privileges(self) -> list[str]:
        return list(self.args.get("privileges") or [])

    @property
    def objects(self) -> list[exp.Table]:
        return list(self.args.get("objects") or [])

    @property
    def accounts(self) -> list[str]:
        return list(self.args.get("accounts") or [])


def read_granting(
    tokens: Sequence[Token], tokenize: Callable[[str], Sequence[Token]]
) -> Granting | None:
    """The statement of these words; None if they begin another one."""
    first, start = tokens[0].text.upper(), tokens[0].start
    if first in ("GRANT", "REVOKE"):
        return _Reader(tokens[1:], tokens[0], start).granted(first)
    if first != "SHOW" or len(tokens) < 2 or not tokens[1].text.upper().startswith("GRANTS"):
        return None
    rest = tokenize(" " * tokens[1].start + tokens[1].text)  # sqlglot does not look into it
    if rest[0].text.upper() != "GRANTS":
        return None
    return _Reader(rest[1:], rest[0], start).shown()


class _Reader:
    def __init__(self, tokens: Sequence[Token], before: Token, start: int) -> None:
        self._tokens = list(tokens)
        self._before = before
        self._start = start

    def granted(self, verb: str) -> Granting:
        privileges = self._listed(self._word)
        if privileges == ["ALL"]:
            self._match("PRIVILEGES")
        self._expect("ON")
        on_channel = self._match("CHANNEL")
        if not on_channel:
            _ = self._match("TABLE") or self._match("VIEW") or self._match("SOURCE")
        objects = self._listed(self._table)
        self._expect("TO" if verb == "GRANT" else "FROM")
        accounts = self._listed(self._account)
        self._end()
        return Granting(
            verb=verb,
            privileges=privileges,
            objects=objects,
            on_channel=on_channel,
            accounts=accounts,
        )

    def shown(self) -> Granting:
        if self._match("ON"):
            made = Granting(verb="SHOW", objects=[self._table()])
        elif self._match("TO") or self._match("FOR"):
            made = Granting(verb="SHOW", accounts=[self._account()])
        else:
            made = Granting(verb="SHOW")
        self._end()
        return made

    def _match(self, word: str) -> bool:
        found = bool(self._tokens) and self._tokens[0].text.upper() == word
        if found:
            self._take()
        return found

    def _take(self) -> Token:
        self._before = self._tokens.pop(0)
        return self._before

    def _expect(self, word: str) -> None:
        if not self._match(word):
            raise self._fault(f"{word} should stand here")

    def _word(self) -> str:
        if not self._tokens:
            raise self._fault("a privilege should stand here")
        return self._take().text.upper()

    def _table(self) -> exp.Table:
        token = self._name("the name of a table or view")
        named = exp.Table(this=exp.to_identifier(token.text))
        named.this.meta.update(start=token.start - self._start, end=token.end - self._start)
        return named

    def _account(self) -> str:
        """A name, which may be a mail address, in quotes or not."""
        text = self._name("the name of a user").text
        while self._tokens and self._tokens[0].text in ("@", ".", "-", "+"):
            text += self._take().text
            text += self._take().text if self._tokens else ""
        return text.lower()

    def _name(self, what: str) -> Token:
        if not self._tokens or not (
            self._tokens[0].token_type in NAMES or self._tokens[0].text.isidentifier()
        ):
            raise self._fault(f"{what} should stand here")
        return self._take()

    def _listed(self, read: Callable[[], T]) -> list[T]:
        found = [read()]
        while self._match(","):
            found.append(read())
        return found

    def _end(self) -> None:
        if self._tokens:
            raise self._fault("the statement should end here")

    def _fault(self, message: str) -> SyntaxFault:
        token = self._tokens[0] if self._tokens else self._before
        place = Span(token.start, token.end + 1) if self._tokens else None
        if place is None:
            place = Span(token.end + 1, token.end + 2)
        return SyntaxFault(
            message,
            code="syntax",
            span=place,
            hint="GRANT SELECT, INSERT ON sale TO ann; REVOKE ALL ON sale FROM ann; "
            "GRANT NOTIFY ON CHANNEL email TO PUBLIC",
        )
