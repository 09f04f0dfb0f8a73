"""Every engine that has to keep the contract of `engines/protocol.py`.

`engine` is each of them, `file_engine` each that keeps a file: records, numbers and other sessions
are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harken.engines.placement.file_opening import open_file
from harken.engines.placement.placement import Placement
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.numbers import Numbers
from tests.engines.reference import ReferenceEngine


def _sqlite(path: str) -> Any:
    engine: Any = SQLiteEngine(open_file(path))
    engine.numbers = Numbers(engine.connection)
    return engine


WITH_FILES: dict[str, Callable[[str], Any]] = {
    "sqlite": _sqlite,
    "placement": lambda path: Placement(open_file(path)),
}
"""Makes the engine for the path of a file."""
MAKERS: dict[str, Callable[[], Any]] = {
    "sqlite": lambda: _sqlite(":memory:"),
    "placement": lambda: Placement(open_file(":memory:")),
    "reference": ReferenceEngine,
}


@pytest.fixture(params=MAKERS)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = MAKERS[request.param]()
    yield made
    if request.param in WITH_FILES:
        made.connection.close()


@pytest.fixture(params=WITH_FILES)
def file_engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = WITH_FILES[request.param](":memory:")
    yield made
    made.connection.close()
