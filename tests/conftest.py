"""How hard hypothesis searches: `HARKEN_NIGHTLY=1` makes it search long. And one Spark session for
all tests that take one: it takes long to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=5_000)
settings.load_profile("nightly" if os.environ.get("HARKEN_NIGHTLY") else "default")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from harken.engines.spark.session import local_session

    session = local_session(cores=2, memory="2g", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
