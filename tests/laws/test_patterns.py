"""Law: a pattern that we take has Java's matches, Java's groups and Java's replacements."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError
from harken.values.builtin_functions import FUNCTIONS
from harken.values.java_patterns import compiled
from tests.generators.pattern_corpus import random_pattern, random_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = 200_000 if os.environ.get("HARKEN_NIGHTLY") else 6_000
COLUMNS = ("found", "whole", "first", "replaced", "place", "count")


def ours(pattern: str, text: str) -> tuple[Any, ...]:
    def call(name: str, *arguments: Any) -> Any:
        return FUNCTIONS[name][0](text, pattern, *arguments)

    has_group = compiled(pattern).groups > 0
    return (
        bool(call("regexp_like")),
        call("regexp_extract", 0),
        call("regexp_extract", 1) if has_group else None,
        call("regexp_replace", "<$0>"),
        call("regexp_instr"),
        call("regexp_count"),
    )


def without_group(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """In Java a group may keep what it held in an attempt that failed."""
    return (*found[:2], None, *found[3:])


def is_taken(pattern: str) -> bool:
    try:
        return compiled(pattern) is not None
    except HarkenError:
        return False


def is_certain(pattern: str, text: str) -> bool:
    """What a letter beyond ASCII is to \\b depends on the version of Java."""
    return text.isascii() or "\\b" not in pattern.lower()


def test_patterns_mean_what_they_mean_in_java(spark: SparkSession) -> None:
    random = Random(None if os.environ.get("HARKEN_SEARCH") else 22)
    java = spark._jvm.java.util.regex.Pattern
    pairs: list[tuple[str, str, bool]] = []
    while len(pairs) < PAIRS:
        pattern = random_pattern(random)
        if is_taken(pattern):
            try:
                java.compile(pattern)
            except Exception:  # a pattern of ours that Java refuses would say so there
                continue
            has_group = compiled(pattern).groups > 0
            texts = [random_text(random) for _ in range(10)]
            pairs += [(pattern, text, has_group) for text in texts if is_certain(pattern, text)]
    frame = spark.createDataFrame(pairs, "p string, t string, g boolean").selectExpr(
        "t RLIKE p",
        "regexp_extract(t, p, 0)",
        "CASE WHEN g THEN regexp_extract(t, p, 1) END",
        "regexp_replace(t, p, '<$0>')",
        "regexp_instr(t, p)",
        "regexp_count(t, p)",
    )
    theirs = [tuple(row) for row in frame.collect()]
    linear = 0
    wrong = []
    for (pattern, text, _), expected in zip(pairs, theirs, strict=True):
        linear += compiled(pattern).is_linear
        found = ours(pattern, text)
        if not compiled(pattern).is_exact:
            found, expected = without_group(found), without_group(expected)
        if found != expected:
            differs = [
                each for each in zip(COLUMNS, found, expected, strict=True) if each[1] != each[2]
            ]
            wrong.append((pattern, text, differs))
    assert not wrong, f"{len(wrong)} of {len(pairs)}:\n" + "\n".join(map(repr, wrong[:40]))
    assert linear > len(pairs) / 3  # the corpus exercises both engines
    assert linear < len(pairs)
