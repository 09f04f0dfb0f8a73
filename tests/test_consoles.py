"""The console sessions in the documents work as written.

A block with a title is a file: it is written before the commands that follow it run. The lines of a
```console block that begin with `$` are typed into one shell for the whole page, in an empty
directory; what stands under each is what it prints, with `...` for what differs. Port 8765 is
replaced by one that is free, and 10 seconds for a service to begin by as many as tests wait.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if "```console\n" in page.read_text("utf-8")
]
END = "end-of-command"


class Shell:
    """One bash for a whole page, so that background jobs and variables last."""

    def __init__(self, directory: Path, python: Path) -> None:
        self.port = str(free_port())
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env={**os.environ, "PATH": path, "COLUMNS": "200"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        typed = command.replace("8765", self.port).replace("wait=10", "wait=120")
        self.process.stdin.write(f"{typed}\necho; echo {END}\n")
        self.process.stdin.flush()
        printed = list[str]()
        for line in self.process.stdout:
            if line.rstrip("\n") == END:
                break
            printed.append(line)
        return "".join(printed).replace(self.port, "8765").rstrip()

    def close(self) -> None:
        self.process.communicate("kill $(jobs -p) 2>/dev/null; exit\n", timeout=PATIENCE)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command with the output under it.

    >>> list(commands("$ echo a\\na\\n$ true\\n"))
    [('echo a', 'a'), ('true', '')]
    """
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.rstrip()


def agrees(expected: str, printed: str) -> bool:
    return OutputChecker().check_output(f"{expected}\n", f"{printed}\n", ELLIPSIS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_console_sessions(page: Path, tmp_path: Path, warm_python: Path) -> None:
    shell = Shell(tmp_path, warm_python)
    try:
        for language, title, text in BLOCK.findall(page.read_text("utf-8")):
            if title:
                (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / title).write_text(text.replace("8765", shell.port), "utf-8")
            elif language == "console":
                for command, expected in commands(text):
                    printed = shell.run(command)
                    assert agrees(expected, printed), f"$ {command}\n{printed}"
    finally:
        shell.close()
