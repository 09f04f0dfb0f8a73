"""What is counted is what a transaction costs when it is not the first of its kind: compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.propagation import compiled_waves


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_waves, "COMPILED_AFTER", 1)
        yield
