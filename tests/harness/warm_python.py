"""A Python that has loaded Harken already, for tests that start many processes.

Its `python` and `harken` behave like those of the environment, but the process that does the work
is forked from one that waits here, so that nothing is imported again. tests/test_core_alone.py
tries what starting from nothing is like.

Run as a script with the path of a socket it is that process. Each connection brings the name of a
command, its arguments, its directory, its environment and its three files; then signals, a byte
each; and gets the exit status. A command whose connection ends early is killed.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

MOST = 1 << 20
FORWARDED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
COMMAND = """\
#!{python} -ISE
import json, os, signal, socket, sys

server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({socket!r})
for each in {forwarded}:
    signal.signal(each, lambda number, frame: server.send(bytes([number])))
said = [{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]
socket.send_fds(server, [json.dumps(said).encode()], [0, 1, 2])
status = json.loads(server.recv(64))
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its `python`; `harken` lies beside it."""
    directory = tmp_path_factory.mktemp("warm")
    place = directory / "socket"
    server = subprocess.Popen(
        [sys.executable, __file__, str(place)],
        stdin=subprocess.PIPE,  # it ends when that is closed, also if the tests are killed
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    for name in ("python", "harken"):
        text = COMMAND.format(
            python=os.path.realpath(sys.executable),
            socket=str(place),
            forwarded=[int(each) for each in FORWARDED],
            name=name,
        )
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    yield directory / "python"
    server.stdin.close()
    server.wait()
    server.stdout.close()


# --- the process that is forked ----------------------------------------------------------------


def serve(place: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(place)
        listening.listen()
        warm_up()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
        else:
            return
    attend(connection)


def warm_up() -> None:
    """Load what most commands need. A thread would be missing in the forked processes."""
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT)")
        db.sql("INSERT INTO t VALUES (1)")
        db.amosql("create type warm; create warm instances :up;")
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()


def attend(connection: socket.socket) -> None:
    """Fork the command, pass signals on and report how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, files, _, _ = socket.recv_fds(connection, MOST, 3)
    process = os.fork()
    if process == 0:
        connection.close()
        become(*json.loads(text), files)
    for each in files:
        os.close(each)
    ended = os.pidfd_open(process)
    while ended not in (ready := select.select([ended, connection], [], [])[0]):
        assert ready
        number = connection.recv(1)
        os.kill(process, number[0] if number else signal.SIGKILL)
        if not number:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    connection.send(json.dumps(status).encode())
    os._exit(0)


def become(
    name: str, arguments: list[str], directory: str, environment: dict[str, str], files: list[int]
) -> NoReturn:
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if name == "harken":
        sys.argv = ["harken", *arguments]
        sys.exit(cli.main())
    run(arguments)
    sys.exit()


def run(arguments: list[str]) -> None:
    """What `python ARGUMENTS...` runs."""
    match arguments:
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = [module, *rest], ""
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", program, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(program, "<string>", "exec"), vars(main))
        case [script, *rest]:
            sys.argv, sys.path[0] = [script, *rest], str(Path(script).parent)
            runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    import harken
    from harken import cli

    serve(sys.argv[1])
