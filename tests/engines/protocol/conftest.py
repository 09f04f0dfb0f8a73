"""The engines that capture changes. The reference engine does not yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines.conftest import MAKERS


@pytest.fixture(params=[name for name in MAKERS if name != "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = MAKERS[request.param]()
    yield made
    made.connection.close()
