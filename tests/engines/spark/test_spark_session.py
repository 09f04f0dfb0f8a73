"""The command line's own session: what keeps it from starting is told in our words."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from harken.engines import machine
from harken.engines.spark import spark_session
from harken.errors import EngineError
from tests.harness import user_session
from tests.harness.both import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Java = Callable[[str, str], Path]


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process of its own, whatever other tests have started in this one."""
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)


@pytest.fixture
def java(no_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java of some version that says something and fails when it is to start Spark."""

    def make(version: str, last_words: str = "") -> Path:
        path = tmp_path / "jre" / "bin" / "java"
        path.parent.mkdir(parents=True)
        path.write_text(
            f"#!/bin/sh\n"
            f'if [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit; fi\n'
            f"printf '%s\\n' '{last_words}' >&2; exit 1\n"
        )
        path.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
        return path

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    return make


def refusal() -> EngineError:
    try:
        spark_session.local_session(cores=1)
    except EngineError as caught:
        error = caught
    assert error.hint
    assert "JAVA_GATEWAY_EXITED" not in error.report()
    with warnings.catch_warnings():
        # PySpark never closes its pipe to a Java that failed.
        warnings.simplefilter("ignore", ResourceWarning)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        gc.collect()
    return error


def test_no_java_on_the_path(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(machine, "packaged_home", lambda: None)
    error = refusal()
    assert error.code == "no-java"
    assert "on the path" in error.message
    assert "pip install 'harken[spark]'" in error.hint


def test_no_java_in_java_home(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = refusal()
    assert error.code == "no-java"
    assert str(tmp_path) in error.message


def test_java_that_is_too_old(java: Java) -> None:
    java("1.8.0_402", "")
    error = refusal()
    assert error.code == "wrong-java"
    assert "version 8" in error.message


def test_java_that_does_not_run(java: Java) -> None:
    java("17", "").write_text("not a program")
    assert refusal().code == "wrong-java"


@pytest.mark.parametrize(
    ("last_words", "code", "sentence"),
    [
        ("java.lang.module.FindException: Module jdk.incubator.vector not found", "wrong-java", ""),
        ("Error: java.lang.UnsupportedClassVersionError: org/apache/spark", "wrong-java", ""),
        ("Error: Could not reserve enough space for 9437184KB object heap", "no-memory", "memory"),
        ("Native memory allocation failed: Cannot allocate memory", "no-memory", "memory"),
        ("java.io.IOException: No space left on device", "no-temporary-space", "disk is full"),
        ("java.io.IOException: Read-only file system", "no-temporary-space", "cannot write"),
        ("java.net.BindException: Cannot assign requested address", "spark-start", "127.0.0.1"),
        ("Exception in thread main: the moon is full", "spark-start", "the moon is full"),
        ("", "spark-start", "without a word"),
    ],
)
def test_java_that_fails(java: Java, last_words: str, code: str, sentence: str) -> None:
    java("17.0.9", last_words)
    error = refusal()
    assert error.code == code
    assert sentence in error.message


def test_a_failed_start_can_be_repeated(java: Java) -> None:
    java("17.0.9", "Read-only file system")
    assert refusal().code == refusal().code == "no-temporary-space"


def test_workers_would_run_another_python(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    error = refusal()
    assert error.code == "wrong-python"
    assert sys.executable in (error.hint or "")


def test_workers_run_this_python_by_default(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON")
    spark_session.check_python()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_another_name_of_this_python_is_this_python(tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("python3")
    assert machine.same_interpreter(str(beside)) == beside.exists()
    elsewhere = tmp_path / "python"
    elsewhere.symlink_to(os.path.realpath(sys.executable))
    assert not machine.same_interpreter(str(elsewhere))


def test_spark_home_without_spark(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java("17", "")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert refusal().code == "no-spark"


@pytest.mark.parametrize("wanted", ["100m", "plenty"])
def test_memory_that_spark_cannot_run_with(
    java: Java, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    java("17", "")
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", wanted)
    error = refusal()
    assert error.code == "no-memory"
    assert wanted in error.message


def test_too_little_memory_is_left(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    java("17", "")
    monkeypatch.setattr(machine, "memory", lambda: 600 * machine.MEBIBYTE)
    error = refusal()
    assert error.code == "no-memory"
    assert "600 MiB are free" in error.message


def test_nowhere_to_write(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java("17", "")
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    error = refusal()
    assert error.code == "no-temporary-space"
    assert "TMPDIR" in (error.hint or "")


def test_no_pyspark(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    java("17", "")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert refusal().code == "no-spark"


def test_the_log_is_kept_from_the_terminal(java: Java, capfd: pytest.CaptureFixture[str]) -> None:
    java("17.0.9", "a long stack trace")
    refusal()
    assert capfd.readouterr() == ("", "")


def test_a_container_may_have_less_than_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    8388608 kB\n",
        "/sys/fs/cgroup/memory.max": "4000000000\n",
        "/sys/fs/cgroup/memory.current": "3500000000\n",
        "/sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 1500000000\n",
    }
    monkeypatch.setattr(machine, "_text", lambda path: files.get(path, ""))
    assert machine.memory() == 2_000_000_000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert machine.memory() == 2**33


def test_a_session_of_the_user_is_recognised_by_its_kind() -> None:
    class Client(SimpleNamespace):
        pass

    Client.__module__ = "pyspark.sql.connect.session"
    assert spark_session.is_connect(Client())  # type: ignore[arg-type]
    assert not spark_session.is_connect(SimpleNamespace())  # type: ignore[arg-type]


def test_a_real_java_that_cannot_have_the_memory(
    no_session: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "900000g")
    error = refusal()
    assert error.code == "no-memory"
    assert capfd.readouterr() == ("", "")


def test_nothing_is_open_to_the_network(spark: SparkSession) -> None:
    spark.range(1).collect()
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    listening = [address for pid in (java, os.getpid()) for address in listeners(pid)]
    assert listening
    assert all(is_loopback(address) for address in listening), listening


def listeners(pid: int) -> list[str]:
    """The addresses, as the kernel writes them, that a process listens on."""
    handles = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            handles.add(os.readlink(handle))
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return [
        line[1].split(":")[0]
        for line in lines
        if line[3] == "0A" and f"socket:[{line[9]}]" in handles
    ]


def is_loopback(address: str) -> bool:
    return address in {"0100007F", "0" * 24 + "01000000", "0" * 16 + "FFFF00000100007F"}


def test_the_session_means_what_harken_means(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark_session.listing_threshold(spark) == spark_session.LIST_ON_DRIVER


def test_a_session_of_the_user_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark, spark__sql__session__timeZone="Asia/Tokyo"):
        user_session.check(spark, tmp_path)


def test_workers_find_our_packages(spark: SparkSession) -> None:
    def imported(batches):  # type: ignore[no-untyped-def]
        import harken

        for batch in batches:
            yield batch if harken.__version__ else None

    assert spark.range(3).mapInArrow(imported, "id long").count() == 3


def test_a_process_has_one_session(spark: SparkSession) -> None:
    error = refusal()
    assert error.code == "spark-start"
    assert "spark=session" in (error.hint or "")
    assert spark.range(1).count() == 1
