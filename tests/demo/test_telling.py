"""The last scene of the demonstration: a continual query over two sources, and what it tells."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from harken.bench import postgres
from harken.bench.postgres import NoPostgres, PostgresServer
from harken.demo import telling
from harken.notify.channel_registry import channel_names


def played() -> str:
    output = io.StringIO()
    telling.play(Console(file=output, width=100))
    assert telling.CHANNEL not in channel_names()
    return output.getvalue()


def tells(story: str) -> None:
    assert "CREATE CONTINUAL QUERY falling" in story
    titles = [line.strip(" ╭╮─") for line in story.splitlines() if "╭" in line]
    assert titles == ["falling: 2 new", "falling: 2 changed", "falling: 1 new"]
    assert "company: Bayer AG, price: 100 -> 94" in story
    assert "company: SAP SE, price: 120" in story


def test_without_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def none(*_: str) -> Iterator[None]:
        raise NoPostgres("there is no PostgreSQL")
        yield

    monkeypatch.setattr(postgres, "postgres_server", none)
    story = played()
    tells(story)
    assert "USING postgresql" not in story


def test_with_postgresql(plain_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def running(*_: str) -> Iterator[PostgresServer]:
        yield plain_server

    monkeypatch.setattr(postgres, "postgres_server", running)
    story = played()
    tells(story)
    assert "USING postgresql" in story
