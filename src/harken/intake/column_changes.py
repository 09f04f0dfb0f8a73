"""How the columns of a mirror are to change. A session knows this without pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Way = Literal["add", "drop", "renew", "take"]


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """`names` are in lower case; for `take` they are what the option says, none for all."""

    way: Way
    names: tuple[str, ...] = ()
    options: Mapping[str, Any] | None = None
    """The options of the source from now on, if they change."""
