"""One local Spark session for all tests of the lake: it takes long to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from harken.engines.spark.session import local_session

    session = local_session(cores=2, memory="2g", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
