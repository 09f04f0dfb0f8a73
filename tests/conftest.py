"""How hard hypothesis searches, and the Spark session that all tests share.

The normal run tries the same examples each time, so that it says something of the change it is run
for. `HARKEN_NIGHTLY=1` makes hypothesis search long, and anew each time; `HARKEN_SEARCH=1` anew
only.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from harken.engines import machine

pytest_plugins = [
    "tests.harness.commands",
    "tests.harness.databases",
    "tests.harness.distribution",
    "tests.harness.servers",
    "tests.harness.warm_python",
]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without bytecode, every process that a test starts compiles all modules again, which takes longer
# than its work.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("search", deadline=None, print_blob=True)
settings.register_profile("nightly", settings.get_profile("search"), max_examples=5_000)
settings.register_profile("default", settings.get_profile("search"), derandomize=True)
if os.environ.get("HARKEN_NIGHTLY"):
    settings.load_profile("nightly")
else:
    settings.load_profile("search" if os.environ.get("HARKEN_SEARCH") else "default")

SPARK_TIMEOUT = 600
"""Seconds for a test with Spark. One that is interrupted leaves the connection to Java between two
messages, and all that follow fail; so none is, only because the machine is busy."""

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1"
)
"""Most of what tests run, runs once: Java's second compiler would only take time from it. With room
for the code and for young objects, neither is swept again and again."""


def pytest_configure() -> None:
    """Sessions that tests make themselves take the packaged Java where the machine has none."""
    machine.choose_java()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with Spark are interrupted late."""
    if config.getoption("timeout", None) is None:
        return
    for item in items:
        given = item.get_closest_marker("timeout")
        if given is None and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT))


def pytest_collection_finish() -> None:
    """What is there by now stays: Python need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="module")
def little_garbage() -> None:
    """A benchmark collects garbage before each timing: let it not look through all that the tests
    before have left. It is looked through again when the run ends."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else extensions complain at the end that something is left


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run: it takes long to start, and longer to become quick."""
    from harken.engines.spark.spark_session import local_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
        session = local_session(
            cores=2, memory="2g", settings={"spark.sql.shuffle.partitions": "2"}
        )
    yield session
    session.stop()
