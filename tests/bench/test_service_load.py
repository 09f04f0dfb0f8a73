"""The load of a service: a short run answers every request; the long one is `nightly`."""

from __future__ import annotations

import pytest

from harken.bench.service_load import figures


def test_every_request_is_answered() -> None:
    found = {each.measure: each.value for each in figures(subscribers=5, rate=20, seconds=2)}
    assert found["errors"] == 0
    assert found["p99 s"] > 0
    assert found["memory MB"] > 10


@pytest.mark.nightly
def test_a_thousand_subscribers_and_two_hundred_requests_a_second() -> None:
    """On a machine with two cores of its own."""
    for each in figures(subscribers=1_000, rate=200, seconds=120):
        assert each.holds is not False, each.json_line()
