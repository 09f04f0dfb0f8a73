"""`rand` and `uuid` in Spark's SQL: the same digits as `values.random_values` draws."""

from __future__ import annotations

from harken.values.random_values import DIGITS, UUID, UUID_PARTS


def drawn(moment: str, text: str) -> str:
    return f"md5(concat(CAST(unix_micros({moment}) AS STRING), ' ', {text}))"


def fraction(digits: str) -> str:
    whole = f"CAST(conv(substring({digits}, 1, {DIGITS}), 16, 10) AS BIGINT)"
    return f"(CAST({whole} AS DOUBLE) / {16**DIGITS}D)"


def uuid(digits: str) -> str:
    return f"regexp_replace({digits}, {UUID_PARTS!r}, {UUID!r})"
