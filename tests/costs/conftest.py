"""What is counted is what a transaction costs when it is not the first of its kind: compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.maintenance import tuning


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "COMPILED_AFTER", 1)
        yield
