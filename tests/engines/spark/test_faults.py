"""What Spark could not do is told in a line that says why."""

from __future__ import annotations

from typing import Any

import pytest

from harken.engines.spark.faults import translated
from harken.errors import StorageError


def told(action: Any) -> str:
    with pytest.raises(StorageError) as caught, translated():
        action()
    assert caught.value.__cause__ is not None
    return caught.value.message


def test_spark_names_what_is_wrong(spark: Any) -> None:
    assert "(TABLE_OR_VIEW_NOT_FOUND)" in told(lambda: spark.table("nowhere").collect())


def test_the_innermost_of_javas_exceptions_tells_why(spark: Any) -> None:
    """Not the name of the call, which is all that the first line has."""
    java = spark._jvm.java
    inner = java.lang.IllegalStateException("no room is left")
    outer = java.lang.Error("it failed", java.lang.Error("a stage failed", inner))
    promised = java.util.concurrent.CompletableFuture()
    promised.completeExceptionally(outer)
    message = told(promised.join)
    assert "java.lang.IllegalStateException: no room is left" in message
    assert "join" not in message


def test_an_exception_of_javas_that_has_no_cause(spark: Any) -> None:
    message = told(spark._jvm.java.util.ArrayDeque().removeFirst)
    assert "java.util.NoSuchElementException" in message
