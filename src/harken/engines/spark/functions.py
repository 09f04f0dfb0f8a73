"""Python functions inside Spark's SQL: built-in operations, and the foreign functions of users.

Spark runs a Python function before the conditions that should shield it, so it never raises: it
gives a value `v`, or an error `e` that the expression around it raises where the value is needed.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.engines.foreign_calls import call, stored_rows
from harken.engines.spark.faults import packed
from harken.engines.spark.sql_expressions import python_name, spark_type
from harken.errors import ForeignFault, HarkenError
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Relation
from harken.values.builtin_functions import FUNCTIONS
from harken.values.encoding import WIDE, decoder, encode_date, encode_timestamp
from harken.values.folds import fold
from harken.values.sql_functions import SQL_FUNCTIONS
from harken.values.types import (
    DATE,
    INTEGER,
    LITERAL_TYPES,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_type,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNATURES: dict[str, tuple[tuple[Type, ...], Type]] = {
    "round": ((NUMBER, INTEGER), NUMBER),
    "power": ((NUMBER, NUMBER), NUMBER),
    "upper": ((TEXT,), TEXT),
    "lower": ((TEXT,), TEXT),
    "to_string_number": ((NUMBER,), TEXT),
    "spark_text": ((NUMBER,), TEXT),
    "to_integer_charstring": ((TEXT,), INTEGER),
    "read_numeral": ((TEXT,), INTEGER),
    "to_number_charstring": ((TEXT,), NUMBER),
    "to_date_charstring": ((TEXT,), DATE),
    "to_timestamp_charstring": ((TEXT,), TIMESTAMP),
    **{
        name: (signature.arguments, signature.result)
        for name, operation in OPERATIONS.items()
        if name in SQL_FUNCTIONS or name.startswith("try_spark_")
        for signature in operation.signatures[-1:]
    },
    "try_to_integer_number": ((NUMBER,), INTEGER),
    "try_to_integer_charstring": ((TEXT,), INTEGER),
    "try_to_number_charstring": ((TEXT,), NUMBER),
}
"""The built-in functions that Spark calls in Python."""

_BY_NAME = {python_name(name, len(given)): name for name, (given, _) in SIGNATURES.items()}
_FOLD = re.compile(r"harken_fold_([a-z0-9_]+?)__([a-z]+)(?:_(\d+)_(\d+))?")
_CALL = re.compile(r"\bharken_\w+(?=\()")


@dataclass(frozen=True)
class ForeignFunction:
    """A user's Python function; `decode` makes Python values of the stored ones it is given."""

    function: Callable[..., Any]
    decode: Sequence[Callable[[Any], Any]]


def built_ins_in(sql: str) -> frozenset[str]:
    """The names of the built-in Python functions that a statement calls."""
    called = frozenset(_CALL.findall(sql))
    return called & _BY_NAME.keys() | {name for name in called if _FOLD.fullmatch(name)}


def register_built_in(session: SparkSession, name: str) -> None:
    folding = _FOLD.fullmatch(name)
    if folding is not None:
        aggregate, kind, *digits = (each for each in folding.groups() if each is not None)
        result = decimal_type(*map(int, digits)) if digits else LITERAL_TYPES[kind]
        folded = _Guarded(_Folding(aggregate), _from_stored(result))
        _register(session, name, folded, spark_type(result))
        return
    function, _ = FUNCTIONS[_BY_NAME[name]]
    _, result = SIGNATURES[_BY_NAME[name]]
    _register(session, name, _Guarded(function, _from_stored(result)), spark_type(result))


def register_foreign(
    session: SparkSession, name: str, relation: Relation, foreign: ForeignFunction
) -> None:
    if any(column.type.surrogate for column in relation.columns):
        raise ForeignFault(
            f"{relation.name} takes or gives objects, which are known to this process alone: "
            "Spark cannot call it",
            code="foreign",
            hint="give it values of the object, such as its name",
        )
    fields = ", ".join(
        f"c{i}: {spark_type(relation.columns[i].type)}"
        for i in range(relation.inputs, relation.arity)
    )
    rows = _Rows(relation, foreign)
    _register(session, name, rows, f"ARRAY<STRUCT<{fields}>>", deterministic=False)


def _register(
    session: SparkSession,
    name: str,
    function: Callable[..., Any],
    type_: str,
    deterministic: bool = True,
) -> None:
    from pyspark.sql.functions import udf

    made = udf(lambda *given: function(*given), f"STRUCT<v: {type_}, e: STRING>")
    session.udf.register(name, made if deterministic else made.asNondeterministic())


@dataclass(frozen=True)
class _Folding:
    """An aggregate of a whole group, of Spark's values."""

    aggregate: str

    def __call__(self, settings: str, rows: Sequence[Sequence[Any]]) -> Any:
        stored = [tuple(map(to_stored, row)) for row in rows]
        return fold(self.aggregate, json.loads(settings), stored)


@dataclass(frozen=True)
class _Guarded:
    """A function of stored values as one of Spark's values."""

    function: Callable[..., Any]
    show: Callable[[Any], Any] | None

    def __call__(self, *given: Any) -> tuple[Any, str | None] | None:
        if None in given:
            return None
        try:
            value = self.function(*map(_stored_time, given))
            return (self.show(value) if self.show and value is not None else value), None
        except HarkenError as error:
            return None, packed(error)


@dataclass(frozen=True)
class _Rows:
    """A foreign function that gives all its rows for some arguments at once."""

    relation: Relation
    foreign: ForeignFunction

    def __call__(self, *given: Any) -> tuple[Any, str | None] | None:
        if None in given:
            return None
        relation, shown = self.relation, self.relation.columns[self.relation.inputs :]
        turns = [_from_stored(column.type) for column in shown]
        try:
            arguments = [
                decode(to_stored(value))
                for decode, value in zip(self.foreign.decode, given, strict=True)
            ]
            rows = stored_rows(relation, call(relation.name, self.foreign.function, arguments))
            return [
                tuple(
                    turn(value) if turn else value for turn, value in zip(turns, row, strict=True)
                )
                for row in rows
            ], None
        except HarkenError as error:
            return None, packed(error)


def _stored_time(value: Any) -> Any:
    return to_stored(value) if isinstance(value, datetime.date) else value


def to_stored(value: Any) -> Any:
    match value:
        case datetime.datetime():
            return encode_timestamp(value.replace(tzinfo=datetime.UTC))
        case datetime.date():
            return encode_date(value)
        case bool():
            return int(value)
        case decimal.Decimal():
            scale = value.as_tuple().exponent
            assert isinstance(scale, int)
            return int(value.scaleb(-scale, context=WIDE))
    return value


def _from_stored(type_: Type) -> Callable[[Any], Any] | None:
    decode = decoder(type_)
    if type_ == TIMESTAMP and decode is not None:
        return lambda micros: decode(micros).replace(tzinfo=None)
    return decode
