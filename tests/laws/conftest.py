"""Laws run through the compiled path: a wave is compiled the first time that it may be.

`test_compiled_waves.py` and a part of the others run with it switched off as well.
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
