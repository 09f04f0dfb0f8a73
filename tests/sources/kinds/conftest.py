"""A web site for each test of kinds that read pages."""

from collections.abc import Iterator

import pytest

from tests.harness.web_site import Site, web_site


@pytest.fixture
def site() -> Iterator[Site]:
    with web_site() as found:
        yield found
