"""A second process with a database of its own, driven line by line over pipes.

Run as a script it is that process: each line of standard input is a JSON list, a command and its
arguments, and each is answered with one line: `{"value": ...}` or `{"error": code}`. While another
process has the write lock it can be told to ask before each new try, so that a test decides what
happens while it waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any


class PeerError(Exception):
    """The Harken error that the other process met."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code


class Peer:
    """The near end of the pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._awaited = 1
        assert self.receive() == "ready"

    def send(self, command: str, *arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()
        self._awaited += 1

    def receive(self) -> Any:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        self._awaited -= 1
        if "error" in answer:
            raise PeerError(answer["error"], answer["message"])
        return answer["value"]

    def __call__(self, command: str, *arguments: Any) -> Any:
        self.send(command, *arguments)
        return self.receive()

    def amosql(self, text: str) -> Any:
        """The rows of the last query in the text; objects are their numbers."""
        return self("amosql", text)

    def reset(self) -> None:
        """Leave the database, whatever the test was doing when it ended."""
        while self._awaited:
            with suppress(PeerError):
                if self.receive() == "waiting":
                    self.send("give up")
        self("leave")

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Server:
    """The far end: one open database and the commands on it."""

    def __init__(self) -> None:
        self.db: Any = None

    def open(self, path: str, timeout: float = 5.0, read_only: bool = False) -> None:
        self.db = harken.connect(path, timeout=timeout, read_only=read_only)

    def close(self) -> None:
        self.db.close()
        self.db = None

    def leave(self) -> None:
        if self.db is not None:
            self.db.rollback()
            self.close()

    def amosql(self, text: str) -> list[list[Any]]:
        return [[plain(value) for value in row] for row in self.db.amosql(text).rows]

    def commit(self) -> None:
        self.db.commit()

    def rollback(self) -> None:
        self.db.rollback()

    def ask_while_waiting(self) -> None:
        self.db.internals.connection.raw.set_busy_handler(self._busy)

    def _busy(self, tries: int) -> bool:
        answer({"value": "waiting"})
        return bool(json.loads(sys.stdin.readline())[0] == "try again")


def plain(value: Any) -> Any:
    return value.oid if isinstance(value, harken.Object) else value


def answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


def serve() -> None:
    server = Server()
    harken.connect().amosql("create type warm; create warm instances :up;")
    answer({"value": "ready"})
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer({"value": getattr(server, command)(*arguments)})
        except harken.HarkenError as error:
            answer({"error": error.code, "message": error.message})
    server.leave()


if __name__ == "__main__":
    import harken

    serve()
