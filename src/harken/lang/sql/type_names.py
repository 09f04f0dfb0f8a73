"""The types of SQL and those of ObjectLog.

All integers have 64 bits and all floating-point numbers are doubles, as in the rest of Harken. A
decimal has up to 38 digits, and its value, in units of its last digit, fits in 64 bits.
"""

from __future__ import annotations

import re

from sqlglot import exp

from harken.errors import Span, TypeFault
from harken.lang.sql.decimals import MOST_DIGITS
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_type,
    is_decimal,
)

_T = exp.DType
TYPES: dict[exp.DType, Type] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT), INTEGER),
    **dict.fromkeys((_T.FLOAT, _T.DOUBLE), NUMBER),
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.CHAR, _T.NVARCHAR, _T.NCHAR), TEXT),
    _T.BOOLEAN: BOOLEAN,
    _T.DATE: DATE,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ, _T.DATETIME), TIMESTAMP),
}
NAMES = {
    INTEGER: "BIGINT",
    NUMBER: "DOUBLE",
    TEXT: "STRING",
    BOOLEAN: "BOOLEAN",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
}


def type_of(node: exp.DataType, span: Span) -> Type:
    if node.this is _T.DECIMAL:
        return _decimal(node, span)
    found = TYPES.get(node.this) if isinstance(node.this, exp.DType) else None
    if found is None:
        raise TypeFault(
            f"there is no type {node.sql()} yet",
            code="type-mismatch",
            span=span,
            hint=f"the types are {', '.join(NAMES.values())}, DECIMAL(p, s) and their other names",
        )
    return found


def _decimal(node: exp.DataType, span: Span) -> Type:
    written = [each.name for each in node.expressions]
    digits = [int(each) if re.fullmatch("[0-9]{1,9}", each) else -1 for each in written]
    precision, scale = (*digits, 0)[:2] if digits else (10, 0)
    if not 0 <= scale <= precision <= MOST_DIGITS or precision == 0:
        raise TypeFault(
            f"there is no {node.sql('spark')}",
            code="type-mismatch",
            span=span,
            hint=f"a decimal has at most {MOST_DIGITS} digits, and no more behind the point",
        )
    return decimal_type(precision, scale)


def is_numeric(type_: Type) -> bool:
    return type_ in NUMERIC or is_decimal(type_)


def type_name(type_: Type) -> str:
    """The name of a type in SQL."""
    return NAMES.get(type_) or (type_.name.upper() if is_decimal(type_) else type_.name)
