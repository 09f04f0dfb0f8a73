"""Laws run through the compiled path: a wave is compiled the first time that it may be.

`test_compiled_waves.py` compares both ways; `test_interpreted_waves.py` runs all others with it
switched off, as `HARKEN_COMPILED_WAVES=false pytest tests/laws` does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.propagation import compiled_waves


@pytest.fixture(autouse=True, scope="package")
def compiled_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_waves, "COMPILED_AFTER", 1)
        yield
