"""Functions that are another operation for another type of what they are given.

to_timestamp(x, pattern)     a text is read; a date or a timestamp is that moment
format_number(x, digits)     a double is written as one, and what is exact by its digits
"""

from __future__ import annotations

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql.arithmetic import Arithmetic
from harken.lang.sql.conversions import MOMENTS, NULL_TYPE
from harken.lang.sql.draft import Body
from harken.lang.sql.scope import Scope
from harken.lang.sql.types import is_numeric, shown
from harken.values.types import INTEGER, NUMBER, TIMESTAMP

READING = {"to_timestamp": "read_moment", "try_to_timestamp": "try_read_moment"}


class TypedCalls(Arithmetic):
    def _by_type(self, node: exp.Expr, scope: Scope, body: Body) -> Term | None:
        """The value of such a call; None if it is none."""
        if not isinstance(node, exp.Anonymous):
            return None
        match node.name.lower(), node.expressions:
            case ("to_timestamp" | "try_to_timestamp" as name, [text, pattern]):
                given = self.value(text, scope, body)
                if given.type in MOMENTS:
                    return self._moment(given, body)
                given = self.as_text(given, body, node)
                terms = [given, self.value(pattern, scope, body)]
                return self._apply(READING[name], terms, body, node)
            case "timestamp_seconds", [seconds]:
                given = self.value(seconds, scope, body)
                if given == Constant(None, NULL_TYPE) or not is_numeric(given.type):
                    given = self.numeric(given, body, node)
                return self._converted(given, TIMESTAMP, body, node)
            case "format_number", [number, digits]:
                return self._with_commas(number, digits, node, scope, body)
            case "hex", [number]:
                given = self.value(number, scope, body)
                if not is_numeric(given.type):
                    return self._apply("hex_of_text", [self.as_text(given, body, node)], body, node)
                whole = self._converted(given, INTEGER, body, node)
                return self._apply("hex_of_integer", [whole], body, node)
            case "to_char", [moment, pattern]:
                given = self.value(moment, scope, body)
                if given.type not in MOMENTS:
                    raise self._unsupported(node, "to_char takes a DATE or a TIMESTAMP")
                terms = [self._moment(given, body), self.value(pattern, scope, body)]
                return self._apply("date_format", terms, body, node)
            case "bround", [number, *digits] if len(digits) <= 1:
                rounded = exp.Round(this=number, decimals=digits[0] if digits else None)
                return self._rounded_to_even(rounded, scope, body)
        return None

    def _with_commas(
        self, number: exp.Expr, digits: exp.Expr, node: exp.Expr, scope: Scope, body: Body
    ) -> Term:
        given = self.numeric(self.value(number, scope, body), body, node)
        if not is_numeric(given.type):
            raise self._unsupported(node, f"format_number of {shown(given.type)} is not there")
        wanted = self.value(digits, scope, body)
        if given.type == NUMBER:
            return self._apply("format_number", [given, wanted], body, node)
        return self._apply("format_numeral", [self.as_text(given, body, node), wanted], body, node)
