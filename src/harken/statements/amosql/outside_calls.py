"""Calls of AMOSQL's procedures, and of Python's, from other languages."""

from __future__ import annotations

from collections.abc import Sequence

from harken.database.evaluation import Evaluation, Frame
from harken.database.runtime import Runtime
from harken.ir.schema import Function
from harken.statements.amosql import steps
from harken.statements.amosql.build import Builder
from harken.statements.amosql.function_syntax import syntax_of
from harken.values.rows import Row
from harken.values.types import Type


def call(runtime: Runtime, name: str, values: Row, types: Sequence[Type]) -> None:
    """Call the overload that fits the types best."""
    chosen = steps.choose_by_object(runtime, name, values, tuple(types))

    def body(function: Function) -> steps.Procedure:
        builder = Builder(runtime.engine, runtime.catalog, function=function)
        return builder.procedure_body(function, syntax_of(function))

    given = Evaluation(tuple(types), (), (), None)
    step = steps.CallProcedure(name, (chosen,), given, body)
    step.call(runtime, Frame(runtime.interface), values)
