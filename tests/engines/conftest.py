"""Every engine that has to keep the contract of `engines/protocol.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harken.engines.placement.file_opening import open_file
from harken.engines.placement.placement import Placement
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.numbers import Numbers
from tests.engines.reference import ReferenceEngine


def _sqlite() -> Any:
    engine: Any = SQLiteEngine(open_file(":memory:"))
    engine.numbers = Numbers(engine.connection)
    return engine


MAKERS: dict[str, Callable[[], Any]] = {
    "sqlite": _sqlite,
    "placement": lambda: Placement(open_file(":memory:")),
    "reference": ReferenceEngine,
}


@pytest.fixture(params=MAKERS)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = MAKERS[request.param]()
    yield made
    if request.param != "reference":
        made.connection.close()
