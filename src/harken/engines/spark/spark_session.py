"""The command line's own Spark session, and what a session can do.

A library takes the session that it is given and neither configures nor stops it; only the command
line and the server call `local_session`, and only whoever called it stops it. Nothing that it opens
can be reached from another machine, and whatever keeps it from starting is an `EngineError`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harken.engines import machine
from harken.errors import EngineError
from harken.packages import install_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
LIST_ON_DRIVER = 10_000
"""Up to this many files are listed without starting a job."""
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
TAIL = 20_000

# Log of a JVM that did not start → code, sentence, hint. The first that matches is reported.
DIAGNOSES: tuple[tuple[str, str, str, str], ...] = (
    (
        r"UnsupportedClassVersionError|Unrecognized option: --add-opens|Unrecognized VM option",
        "wrong-java",
        "this Java is not one that Spark runs on",
        f"install Java {machine.OLDEST_JAVA} or newer, or set JAVA_HOME to it",
    ),
    (
        r"Module jdk\.incubator\.vector not found|initialization of boot layer",
        "wrong-java",
        "this Java lacks a module that Spark needs",
        "it is a cut-down runtime: install a full one (openjdk-17-jre-headless) and set JAVA_HOME",
    ),
    (
        r"JAVA_HOME is not set|Unable to locate a Java Runtime|java: (command )?not found",
        "no-java",
        "Spark needs Java, and none was found",
        f"install Java {machine.OLDEST_JAVA} or newer, or set JAVA_HOME to it",
    ),
    (
        r"object heap|insufficient memory|Cannot allocate memory|OutOfMemoryError"
        r"|maximum heap size|must be at least 471859200|Too small (initial|maximum) heap",
        "no-memory",
        "there is not enough memory for Spark",
        "close other programs, or give it less: SPARK_DRIVER_MEMORY=1g",
    ),
    (
        r"No space left on device",
        "no-temporary-space",
        "the disk is full where Spark keeps its temporary files",
        "make room, or set TMPDIR to a directory that has some",
    ),
    (
        r"Read-only file system|Failed to create a temp directory|Permission denied"
        r"|AccessDeniedException",
        "no-temporary-space",
        "Spark cannot write its temporary files",
        "set TMPDIR to a directory that you may write to",
    ),
    (
        r"BindException|could not bind|Cannot assign requested address|UnknownHostException",
        "spark-start",
        f"Spark cannot listen on {LOOPBACK}",
        "the loopback interface must be up, also inside a container",
    ),
    (
        r"ClassNotFoundException|NoClassDefFoundError|unresolved dependency",
        "spark-start",
        "Spark does not find something that it was told to load",
        "look at PYSPARK_SUBMIT_ARGS, SPARK_CONF_DIR and spark-defaults.conf",
    ),
)


def local_session(
    *,
    cores: int | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A new session in local mode, for a process that has none; its owner calls `stop`."""
    check_python()
    check_java()
    check_spark_home()
    heap = _heap(memory)
    directory = _directory()
    chosen = {**_settings(cores or machine.cores(), heap, directory), **(settings or {})}
    with (directory / "spark.log").open("w+b") as log:
        return _start(chosen, log)


def check_python() -> None:
    """Workers run PYSPARK_PYTHON; unset, it becomes the interpreter of this process."""
    chosen = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not machine.same_interpreter(chosen):
        raise EngineError(
            f"PYSPARK_PYTHON is {chosen}, but Harken runs in {sys.executable}",
            code="wrong-python",
            hint="unset PYSPARK_PYTHON, or: export PYSPARK_PYTHON=" + sys.executable,
        )


def check_java() -> None:
    machine.choose_java()
    path = machine.java_path()
    hint = machine.java_remedy()
    if path is None:
        home = os.environ.get("JAVA_HOME")
        where = f"in JAVA_HOME ({home})" if home else "on the path"
        raise EngineError(f"Spark needs Java, and there is none {where}", code="no-java", hint=hint)
    version = machine.java_version(path)
    if version is None:
        raise EngineError(f"the Java at {path} does not run", code="wrong-java", hint=hint)
    if version < machine.OLDEST_JAVA:
        raise EngineError(
            f"the Java at {path} is version {version}, too old for Spark",
            code="wrong-java",
            hint=hint,
        )


def check_spark_home() -> None:
    home = machine.foreign_spark_home()
    if home and not (Path(home) / "bin" / "spark-submit").exists():
        raise EngineError(
            f"SPARK_HOME is {home}, where no Spark is",
            code="no-spark",
            hint="unset SPARK_HOME: PySpark brings a Spark of its own",
        )


def is_connect(session: SparkSession) -> bool:
    """Whether the session is a client of a server (Spark Connect): it then has no JVM of its own,
    so no `_jdf`, and the server reads the files."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def has_delta(session: SparkSession) -> bool:
    """Whether the Delta connector was configured, as its documents say to do it."""
    extensions = session.conf.get("spark.sql.extensions", "") or ""
    return DELTA_EXTENSION in extensions


def listing_threshold(session: SparkSession) -> int:
    """More paths than this, and Spark starts a job to look them up."""
    name = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    return int(session.conf.get(name, "32") or 32)


def conditions(error: Exception) -> set[str]:
    """Spark's names for what went wrong, also where an error of Py4J or gRPC carries them.

    A classic session raises what happens while rows are collected as Arrow as a bare
    `Py4JJavaError`: only its text names the condition.

    >>> conditions(RuntimeError("Caused by: [DIVIDE_BY_ZERO] Division by zero."))
    {'DIVIDE_BY_ZERO'}
    """
    return set(re.findall(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]", str(error)))


def _heap(memory: str | None) -> int:
    available = machine.memory()
    wanted = memory or os.environ.get("SPARK_DRIVER_MEMORY")
    size = machine.parse_memory(wanted) if wanted else machine.heap(available)
    if size is None or size < machine.SMALLEST_HEAP:
        raise EngineError(
            f"Spark cannot run with {wanted} of memory",
            code="no-memory",
            hint=f"say at least {machine.SMALLEST_HEAP // machine.MEBIBYTE}m",
        )
    if not wanted and size + machine.BESIDE_THE_HEAP > available:
        needed, left = ((n // machine.MEBIBYTE) for n in (size, available))
        raise EngineError(
            f"Spark would take {needed} MiB of memory, and {left} MiB are free",
            code="no-memory",
            hint="close other programs, or give it less: SPARK_DRIVER_MEMORY=1g",
        )
    return size


def _directory() -> Path:
    try:
        directory = Path(tempfile.mkdtemp(prefix="harken-spark-"))
        (directory / "warehouse").mkdir()
    except OSError as error:
        raise EngineError(
            f"Spark needs a temporary directory, and none can be made: {error}",
            code="no-temporary-space",
            hint="set TMPDIR to a directory that you may write to",
        ) from error
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _settings(cores: int, heap: int, directory: Path) -> dict[str, str]:
    return {
        "spark.app.name": "harken",
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": f"{heap // machine.MEBIBYTE}m",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Native libraries are unpacked here, so that /tmp may be mounted without execution.
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={directory}",
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(LIST_ON_DRIVER),
    }


def _start(settings: Mapping[str, str], log: IO[bytes]) -> SparkSession:
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            f"PySpark cannot be loaded: {error}",
            code="no-spark",
            hint=install_command("pyspark"),
        ) from error
    if SparkContext._active_spark_context is not None:
        raise EngineError(
            "this process has a Spark session already",
            code="spark-start",
            hint="give that one to Harken: harken.connect(path, spark=session)",
        )
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    gateway: Any = None
    try:
        # Java's output goes to a file: the user only reads what it means.
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError, OSError, RuntimeError, ValueError) as error:
        if gateway is not None:
            _end(gateway)
        raise diagnose(_tail(log), str(error)) from error
    context.setLogLevel("ERROR")
    return SparkSession(context)


def _end(gateway: Any) -> None:
    """Spark keeps the gateway for the next context of the process, but this one is of no use."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


def diagnose(log: str, error: str) -> EngineError:
    """What kept Spark from starting, from what Java wrote before it gave up.

    >>> diagnose("Error: Could not reserve enough space for 9g object heap", "").code
    'no-memory'
    """
    said = f"{log}\n{error}"
    for pattern, code, sentence, hint in DIAGNOSES:
        if re.search(pattern, said):
            return EngineError(f"{sentence}: {_last_words(log or error)}", code=code, hint=hint)
    if "JAVA_GATEWAY_EXITED" in error and not log.strip():
        return EngineError(
            "Java ended before Spark had started, without a word",
            code="spark-start",
            hint="so ends a process that the system kills for want of memory; try harken doctor",
        )
    return EngineError(
        f"Spark did not start: {_last_words(log or error)}",
        code="spark-start",
        hint="harken doctor looks at what Spark needs",
    )


def _last_words(said: str) -> str:
    """The line that says most: the first with an error in it, else the last of all."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|exception|cannot|not ", line, re.I)]
    return (telling or lines or ["it said nothing"])[0 if telling else -1][:300]


def _tail(log: IO[bytes]) -> str:
    log.flush()
    size = os.fstat(log.fileno()).st_size
    said = os.pread(log.fileno(), TAIL, max(0, size - TAIL)).decode("utf-8", "replace")
    # Spark's shell script stumbles over a Java that said nothing, and blames a line of its own.
    return re.sub(r"[^\s]*spark-class: line \d+: .*", "", said)
