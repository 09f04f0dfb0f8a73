"""The types of SQL and those of ObjectLog.

All integers have 64 bits and all floating-point numbers are doubles, as in the rest of Harken.
"""

from __future__ import annotations

from sqlglot import exp

from harken.errors import Span, TypeFault
from harken.ir.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type

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
    found = TYPES.get(node.this) if isinstance(node.this, exp.DType) else None
    if found is None:
        raise TypeFault(
            f"there is no type {node.sql('spark')} yet",
            code="type-mismatch",
            span=span,
            hint=f"the types are {', '.join(NAMES.values())} and their usual other names",
        )
    return found


def shown(type_: Type) -> str:
    """What a type is called in SQL."""
    return NAMES.get(type_, type_.name)
