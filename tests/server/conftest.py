"""Services for the tests: a real uvicorn on a free port of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from tests.server.serving import SCHEMA, Served


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "shop.db"
    with harken.connect(path) as db:
        db.sql(SCHEMA)
    return path


@pytest.fixture
def path(tmp_path: Path, template: Path) -> str:
    return str(shutil.copy(template, tmp_path / "shop.db"))


@pytest.fixture(scope="session")
def _ending() -> Iterator[list[Served]]:
    """A service takes a while to end: the tests go on meanwhile."""
    ending: list[Served] = []
    yield ending
    for served in ending:
        served.stop()


@pytest.fixture
def serve(path: str, _ending: list[Served]) -> Iterator[Callable[..., Served]]:
    """Serve the database of this test; all services end with it."""
    started: list[Served] = []

    def start(**options: Any) -> Served:
        started.append(Served(path, **options))
        return started[-1]

    yield start
    for served in started:
        served.leave()
    _ending.extend(started)


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture
def client(served: Served) -> harken.Client:
    return served.client
