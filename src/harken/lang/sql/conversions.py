"""Conversions between types: literals, CAST, and the implicit conversions of operations and
comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from sqlglot import exp

from harken.errors import TypeFault, ValueFault
from harken.ir.operations import OPERATIONS, Operation, Signature
from harken.ir.terms import Constant, Parameter, Term
from harken.lang.sql import decimals
from harken.lang.sql.decimals import MOST_DIGITS
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.type_names import NAMES, is_numeric, type_name
from harken.values.parsing import parse_boolean, parse_date, parse_timestamp
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Hierarchy,
    Type,
    decimal_digits,
    decimal_type,
    is_decimal,
)

NULL_TYPE = TEXT.or_null()
"""The type of a bare NULL, until it meets another."""
HIERARCHY = Hierarchy({})
MOMENTS = {DATE, TIMESTAMP}
READ = {BOOLEAN: "spark_boolean", DATE: "spark_date", TIMESTAMP: "spark_timestamp"}
"""How a text becomes a value of another type."""
CONVERTING = frozenset(
    name for name in OPERATIONS if name.startswith(("to_", "try_", "spark_", "read_"))
)
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def to_same_type(
    draft: Draft, left: Term, right: Term, body: Body, node: exp.Expr
) -> tuple[Term, Term]:
    """Two terms as ones of the same type."""
    if left.type == right.type:
        return left, right
    for one, other in ((left, right), (right, left)):
        converted = constant_as(draft, one, other.type, node)
        if converted is not None:
            left, right = (converted, other) if one is left else (other, converted)
            break
    if left.type == right.type:
        return left, right
    if TEXT in (left.type, right.type):
        wanted = shared_type((left.type, right.type))
        if wanted is not None:
            return (
                convert_to(draft, left, wanted, body, node),
                convert_to(draft, right, wanted, body, node),
            )
    if {left.type, right.type} == MOMENTS:
        return as_timestamp(draft, left, body), as_timestamp(draft, right, body)
    if is_numeric(left.type) and is_numeric(right.type):
        wanted = NUMBER
        if NUMBER not in (left.type, right.type):
            wanted = decimals.common(
                decimals.as_decimal(left.type), decimals.as_decimal(right.type)
            )
        left = draft.coerce(left, wanted, body, node)
        return left, draft.coerce(right, wanted, body, node)
    raise TypeFault(
        f"{type_name(left.type)} and {type_name(right.type)} are not compatible",
        code="type-mismatch",
        span=draft.place(node),
        hint="convert one of them with CAST",
    )


def as_timestamp(draft: Draft, term: Term, body: Body) -> Term:
    """A date as its first moment."""
    if term.type == TIMESTAMP:
        return term
    return draft.compute("to_timestamp", (term,), TIMESTAMP, body)


def to_shared_type(draft: Draft, values: Sequence[Term], body: Body, node: exp.Expr) -> list[Term]:
    known = [each for each in values if each != Constant(None, NULL_TYPE)]
    wanted = shared_type([each.type for each in known]) if known else NULL_TYPE
    wanted = known[0].type if wanted is None else wanted
    return [convert_to(draft, each, wanted, body, node) for each in values]


def convert_to(draft: Draft, term: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
    """A value as one of the type that it has together with others, see `together`."""
    if wanted == TIMESTAMP and term.type == DATE:
        return as_timestamp(draft, term, body)
    converted = constant_as(draft, term, wanted, node)
    if converted is not None:
        return draft.coerce(converted, wanted, body, node)
    if term.type == TEXT and wanted != TEXT:
        return cast_to(draft, term, wanted, body, node)
    return draft.coerce(term, wanted, body, node)


def as_numeric(draft: Draft, term: Term, body: Body, node: exp.Expr) -> Term:
    """A text where a number is wanted is a double."""
    if term == Constant(None, NULL_TYPE):
        return Constant(None, NUMBER.or_null())
    return convert_to(draft, term, NUMBER, body, node) if term.type == TEXT else term


def apply(draft: Draft, name: str, values: Sequence[Term], body: Body, node: exp.Expr) -> Term:
    operation = OPERATIONS.get(name)
    types = [each.type for each in values]
    bare = [i for i, each in enumerate(values) if each == Constant(None, NULL_TYPE)]
    signature = operation.resolve(types, HIERARCHY) if operation is not None else None
    if signature is None and operation is not None and bare:
        signature = next(
            (
                each
                for each in operation.signatures
                if len(each.arguments) == len(types)
                and all(
                    i in bare or HIERARCHY.is_subtype(given, wanted)
                    for i, (given, wanted) in enumerate(zip(types, each.arguments, strict=True))
                )
            ),
            None,
        )
    if signature is None and operation is not None and operation.symbol is None:
        signature, values = _implied(draft, operation, values, body, node)
    if signature is None:
        given = ", ".join(type_name(each) for each in types)
        raise TypeFault(
            f"{name} cannot be applied to {given}",
            code="type-mismatch",
            span=draft.place(node),
        )
    terms = [
        draft.coerce(value, wanted, body, node)
        for value, wanted in zip(values, signature.arguments, strict=True)
    ]
    return draft.compute(name, terms, signature.result, body)


def _implied(
    draft: Draft, operation: Operation, values: Sequence[Term], body: Body, node: exp.Expr
) -> tuple[Signature | None, Sequence[Term]]:
    """A signature that the values fit after implicit conversions, and the converted values. A
    conversion function takes its argument as it is."""
    if operation.name in CONVERTING:
        return None, values
    for signature in operation.signatures:
        pairs = list(zip(values, signature.arguments, strict=False))
        if len(signature.arguments) == len(values) and all(
            HIERARCHY.is_subtype(given.type, wanted) or converts_implicitly(given.type, wanted)
            for given, wanted in pairs
        ):
            return signature, [
                cast_to(draft, given, wanted, body, node)
                if converts_implicitly(given.type, wanted)
                else given
                for given, wanted in pairs
            ]
    return None, values


def literal_term(draft: Draft, node: exp.Literal) -> Constant:
    if node.is_string:
        return Constant(node.this, TEXT)
    text = node.this
    if text.isdigit():
        value = int(text)
        if value >= 2**63:
            raise ValueFault(
                f"{text} does not fit in 64 bits",
                code="overflow",
                span=draft.place(node),
            )
        return Constant(value, INTEGER)
    if "e" in text.lower():
        try:
            return Constant(float(text), NUMBER)
        except ValueError:
            raise draft.unsupported(
                node, f"{text} is not a number; put a space before + and -"
            ) from None
    return Constant(Decimal(text), decimals.of_literal(text))


def constant_as(draft: Draft, term: Term, type_: Type, node: exp.Expr) -> Term | None:
    """A constant as one of another type: NULL is of any, and a text can be a date or a
    number."""
    if isinstance(term, Parameter):
        return _lifted_as(draft, term, type_, node)
    if not isinstance(term, Constant):
        return None
    if term.value is None:
        return Constant(None, type_.or_null())
    if term.type == TEXT and type_ in (DATE, TIMESTAMP):
        return _parsed(draft, str(term.value), type_, node)
    if term.type == TEXT and type_ == BOOLEAN:
        return Constant(bool(parse_boolean(str(term.value))), BOOLEAN)
    if term.type == TEXT and is_numeric(type_):
        return _number(draft, str(term.value).strip(), type_, node)
    return None


def _lifted_as(draft: Draft, given: Parameter, type_: Type, node: exp.Expr) -> Term | None:
    """The same of a constant that was lifted. As a decimal a text has the digits that it says."""
    if given.type != TEXT or not (type_ in READ or is_numeric(type_)):
        return None
    if is_decimal(type_):
        raise draft.conversions.refuse(given)

    def convert(constant: Constant) -> Constant | None:
        made = constant_as(draft, constant, type_, node)
        return made if isinstance(made, Constant) else None

    return draft.conversions.converted(given, type_, convert)


def _number(draft: Draft, text: str, type_: Type, node: exp.Expr) -> Constant:
    """A text beside a number, as in `n > '5'`."""
    plain = text.lstrip("+-")
    found: Constant | None = None
    if NUMERAL.fullmatch(text) and type_ == NUMBER:
        found = Constant(float(text), NUMBER)
    elif type_ == INTEGER and (whole := integer_in(text)) is not None:
        found = Constant(whole, INTEGER)
    elif NUMERAL.fullmatch(text) and is_decimal(type_) and "e" not in text.lower():
        found = Constant(Decimal(text), decimals.of_literal(plain))
    if found is None:
        raise ValueFault(
            f"'{text}' is not a {type_name(type_)}", code="bad-value", span=draft.place(node)
        )
    return found


def _parsed(draft: Draft, text: str, type_: Type, node: exp.Expr) -> Constant:
    try:
        if type_ == DATE:
            return Constant(parse_date(text), DATE)
        return Constant(parse_timestamp(text), TIMESTAMP)
    except ValueFault:
        raise ValueFault(
            f"'{text}' is not a {type_name(type_)}",
            code="bad-value",
            span=draft.place(node),
            hint="write it as 2001-02-03" + (" 04:05:06" if type_ == TIMESTAMP else ""),
        ) from None


def cast_to(draft: Draft, given: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
    """What CAST makes of a value."""
    if given.type == wanted:
        return given
    if is_null(given):
        return Constant(None, wanted.or_null())
    if given.type != TEXT or not is_numeric(wanted):
        converted = constant_as(draft, given, wanted, node)
        if converted is not None:
            return converted
    elif isinstance(given, Parameter):
        raise draft.conversions.refuse(given)
    elif isinstance(given, Constant) and (read := _constant_number(str(given.value), wanted)):
        return read
    exact = is_decimal(given.type) or given.type == INTEGER
    if exact and (wanted == NUMBER or is_decimal(wanted)):
        return draft.coerce(given, wanted, body, node)
    if is_decimal(wanted) and given.type in (NUMBER, TEXT):
        return draft.compute("to_decimal", (given,), wanted, body)
    if is_decimal(given.type) and wanted in (INTEGER, TEXT):
        name = "to_integer" if wanted == INTEGER else "to_string"
        return draft.compute(name, (given,), wanted, body)
    if TIMESTAMP in (given.type, wanted) and is_numeric(
        wanted if given.type == TIMESTAMP else given.type
    ):
        return _seconds_of(draft, given, wanted, body, node)
    if given.type == TEXT and wanted in READ:
        return draft.compute(READ[wanted], (given,), wanted, body)
    if wanted == BOOLEAN and is_numeric(given.type):
        zero = draft.coerce(Constant(0, INTEGER), given.type.or_null(False), body, node)
        return draft.compute("is !=", (given, zero), BOOLEAN, body)
    names: dict[Type, str] = {
        INTEGER: "to_integer",
        NUMBER: "to_number",
        DATE: "to_date",
        TIMESTAMP: "to_timestamp",
    }
    if given.type == BOOLEAN and is_numeric(wanted):
        whole = [Constant(n, INTEGER) for n in (1, 0)]
        one, zero = (draft.coerce(each, wanted, body, node) for each in whole)
        chosen = draft.compute("choose", (given, one, zero), wanted, body)
        if not given.type.nullable:
            return chosen
        missing = draft.compute("is null", (given,), BOOLEAN, body)
        nothing = Constant(None, wanted.or_null())
        return draft.compute("choose", (missing, nothing, chosen), wanted, body)
    if wanted == TEXT:
        return as_text(draft, given, body, node)
    if wanted not in names:
        raise draft.unsupported(
            node, f"{type_name(given.type)} cannot be converted to {type_name(wanted)}"
        )
    return apply(draft, names[wanted], [given], body, node)


def _seconds_of(draft: Draft, given: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
    """A timestamp as seconds since 1970, or the other way round."""
    compute, million = draft.compute, Constant(1_000_000, INTEGER)
    if given.type == INTEGER:
        micros = compute("*", (given, million), INTEGER, body)
        return compute("timestamp_micros", (micros,), TIMESTAMP, body)
    if given.type == NUMBER:
        exact = compute("*", (given, Constant(1e6, NUMBER)), NUMBER, body)
        micros = compute("to_integer", (exact,), INTEGER, body)
        return compute("timestamp_micros", (micros,), TIMESTAMP, body)
    if is_decimal(given.type):
        return _exact_timestamp(draft, given, body, node)
    if wanted == INTEGER:
        whole = compute("floor_timestamp", (given, million), TIMESTAMP, body)
        micros = compute("unix_micros", (whole,), INTEGER, body)
        return compute("div", (micros, million), INTEGER, body)
    micros = compute("unix_micros", (given,), INTEGER, body)
    number = compute("widen", (micros,), NUMBER, body)
    seconds = compute("/", (number, Constant(1e6, NUMBER)), NUMBER, body)
    return cast_to(draft, seconds, wanted, body, node)


def _exact_timestamp(draft: Draft, given: Term, body: Body, node: exp.Expr) -> Term:
    """Decimal seconds as a timestamp. Fractions of a microsecond are dropped."""
    compute, million = draft.compute, Constant(1_000_000, INTEGER)
    one = Constant(Decimal(1), decimal_type(1, 0))
    sides = to_same_type(draft, given, one, body, node)
    rest = compute("mod", sides, sides[0].type, body)
    scale = decimal_digits(rest.type)[1]
    unit = Constant(Decimal(1_000_000), decimal_type(7, 0))
    part = compute("*", (rest, unit), decimal_type(scale + 8, scale), body)
    whole = compute("to_integer", (given,), INTEGER, body)
    micros = compute("*", (whole, million), INTEGER, body)
    behind = compute("to_integer", (part,), INTEGER, body)
    total = compute("+", (micros, behind), INTEGER, body)
    return compute("timestamp_micros", (total,), TIMESTAMP, body)


def as_text(draft: Draft, term: Term, body: Body, node: exp.Expr) -> Term:
    if term.type == TEXT:
        return term
    if is_decimal(term.type):
        return draft.compute("to_string", (term,), TEXT, body)
    name = "spark_text" if term.type == NUMBER else "to_string"
    return apply(draft, name, [term], body, node)


def integer_in(text: str) -> int | None:
    """The whole number of 64 bits that a text says, if it says one."""
    digits = text.lstrip("+-").lstrip("0")
    if not WHOLE.fullmatch(text) or len(digits) > len(str(2**63)):
        return None
    value = int(digits or "0")
    return (-value if text[0] == "-" else value) if value < 2**63 else None


def _constant_number(text: str, wanted: Type) -> Constant | None:
    """A number that is written in a text; None where reading it fails, or needs more care."""
    if wanted == INTEGER and (whole := integer_in(text)) is not None:
        return Constant(whole, INTEGER)
    if not is_decimal(wanted) or not NUMERAL.fullmatch(text) or len(text) > MOST_DIGITS:
        return None
    value = decimals.rounded(Decimal(text), wanted)
    return None if value is None else Constant(value, wanted)


def is_null(term: Term) -> bool:
    """Is it NULL, whatever the data are?"""
    return isinstance(term, Constant) and term.value is None


def decimal_of(draft: Draft, term: Term) -> Type:
    """A number's type of decimals; an integer that is written out has its own digits."""
    if isinstance(term, Parameter) and term.type == INTEGER:
        raise draft.conversions.refuse(term)
    if isinstance(term, Constant) and term.type == INTEGER and isinstance(term.value, int):
        return decimals.of_integer(term.value)
    return decimals.as_decimal(term.type)


def converts_implicitly(given: Type, wanted: Type) -> bool:
    """Is an argument of one type converted to the other implicitly?"""
    if wanted == TEXT:
        return given in NAMES or is_decimal(given)
    return (given == TEXT and (is_numeric(wanted) or wanted in READ)) or {given, wanted} == MOMENTS


def shared_type(types: Iterable[Type]) -> Type | None:
    """The type that values of all these types are converted to; None if there is none. A text
    becomes an integer beside integers, a double beside other numbers, else the other type."""
    given = set(types)
    others = given - {TEXT}
    if len(given) == 1:
        return given.pop()
    if all(map(is_numeric, others)):
        return NUMBER if TEXT in given and others != {INTEGER} else numeric_type(others)
    if others == MOMENTS:
        return TIMESTAMP
    return others.pop() if len(others) == 1 and others <= READ.keys() else None


def numeric_type(types: Iterable[Type]) -> Type:
    """The type of numbers that holds those of all of these."""
    given = list(types)
    if NUMBER in given:
        return NUMBER
    if not any(map(is_decimal, given)):
        return INTEGER
    found = decimals.as_decimal(given[0])
    for each in given[1:]:
        found = decimals.common(found, decimals.as_decimal(each))
    return found


def common_type(draft: Draft, terms: Sequence[Term], node: exp.Expr) -> Type:
    known = [t for t in terms if not (isinstance(t, Constant) and t.value is None)]
    nullable = any(t.type.nullable for t in terms)
    types = {t.type for t in known}
    found = shared_type(types) if types else terms[0].type
    if found is None:
        raise TypeFault(
            f"{' and '.join(sorted(map(type_name, types)))} cannot be in one column",
            code="type-mismatch",
            span=draft.place(node),
            hint="convert one of them with CAST",
        )
    return found.or_null(nullable)


def as_type(draft: Draft, term: Term, type_: Type, body: Body, node: exp.Expr) -> Term:
    if isinstance(term, Constant) and term.value is None:
        return Constant(None, type_.or_null())
    return convert_to(draft, term, type_, body, node)
