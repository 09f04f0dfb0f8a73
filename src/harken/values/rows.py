"""A row: one value for each column of a relation, in the order of the columns."""

from __future__ import annotations

from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
