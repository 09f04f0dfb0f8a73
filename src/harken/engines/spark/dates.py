"""Dates and timestamps in Spark's SQL: moved, and subtracted from each other.

Law: what leaves the calendar is an error, and never another date.
"""

from __future__ import annotations

from collections.abc import Callable

from harken.engines.spark.faults import raising


def days(sign: str) -> Callable[..., str]:
    def text(date: str, days: str) -> str:
        near = f"{days} BETWEEN -10000000L AND 10000000L"
        moved = f"date_add({date}, CAST({sign}{days} AS INT))"
        return f"(CASE WHEN {near} THEN {moved} ELSE {raising('date-overflow')} END)"

    return text


def months(date: str, months: str) -> str:
    near = f"{months} BETWEEN -1000000L AND 1000000L"
    moved = f"add_months({date}, CAST({months} AS INT))"
    outside = f"{moved} NOT BETWEEN DATE'0001-01-01' AND DATE'9999-12-31'"
    fault = raising("date-overflow")
    inside = f"CASE WHEN {outside} THEN {fault} ELSE {moved} END"
    return f"(CASE WHEN NOT {near} THEN {fault} ELSE {inside} END)"


def seconds(sign: str) -> Callable[..., str]:
    def text(moment: str, seconds: str) -> str:
        near = f"abs({seconds}) <= 1E12D"
        micros = f"CAST(round({seconds} * 1000000D) AS DECIMAL(20, 0))"
        moved = f"{moment} {sign} make_dt_interval(0, 0, 0, {micros} / 1000000)"
        return f"(CASE WHEN {near} THEN {moved} ELSE {raising('timestamp-overflow')} END)"

    return text


def between_timestamps(a: str, b: str) -> str:
    return f"(CAST({micros_since(a, b)} AS DOUBLE) / 1000000D)"


def micros_since(a: str, b: str) -> str:
    exact = f"CAST(CAST({a} - {b} AS INTERVAL SECOND) AS DECIMAL(20, 6))"
    return f"CAST({exact} * 1000000 AS BIGINT)"
