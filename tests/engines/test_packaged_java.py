"""Spark runs on a machine without Java, on the Java that comes from PyPI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import harken
from harken.engines import machine, packaged_java
from harken.errors import EngineError

PROGRAM = """
import pandas, pyarrow
from harken.engines.spark.spark_session import local_session
spark = local_session(cores=1, memory="1g")
frame = spark.createDataFrame(pandas.DataFrame({"n": [1, 2, 3]}))
print(frame.groupBy().sum("n").toArrow().to_pylist())
spark.stop()
"""


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that has all that is on ours but Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for path in Path(directory).glob("*"):
            if path.name.startswith("java"):
                continue
            (tmp_path / path.name).unlink(missing_ok=True)
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_packaged_java_is_found(no_java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = machine.java_path()
    assert path == os.path.join(harken.java_home(), "bin", "java")
    assert (machine.java_version(path) or 0) >= machine.OLDEST_JAVA
    monkeypatch.setenv("JAVA_HOME", "")
    machine.choose_java()
    assert os.environ["JAVA_HOME"] == harken.java_home()


def test_a_java_home_of_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    machine.choose_java()
    assert os.environ["JAVA_HOME"] == "/nowhere"
    assert machine.java_path() is None


def test_the_wrapper_keeps_every_argument_but_one(tmp_path: Path) -> None:
    real = tmp_path / "real java"
    real.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    real.chmod(0o755)
    wrapper = packaged_java.make_wrapper(tmp_path / "home", real)
    given = ["-cp", "a b", packaged_java.LACKING, "*", ""]
    shown = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True).stdout
    assert shown == "[-cp][a b][*][]"


def test_without_the_package_the_hint_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged_java, "packaged_home", lambda: None)
    with pytest.raises(EngineError) as caught:
        harken.java_home()
    assert caught.value.hint == "pip install 'harken[spark]'"


def test_spark_runs_on_it(no_java: None) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PYSPARK_PYTHON": sys.executable},
    )
    assert ended.stdout == "[{'sum(n)': 6}]\n", ended.stderr
