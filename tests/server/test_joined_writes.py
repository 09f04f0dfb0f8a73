"""What is written in one turn leaves in one piece, in order, and nothing is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

from harken.server.joined_writes import MAX_HELD, JoinedWrites


class Recorded(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []

    def write(self, data: Any) -> None:
        self.events.append(data)

    def close(self) -> None:
        self.events.append("closed")

    def abort(self) -> None:
        self.events.append("aborted")


def test_writes_of_one_turn_are_joined() -> None:
    async def write() -> list[Any]:
        sent = Recorded()
        joined = JoinedWrites(sent, asyncio.get_running_loop())
        joined.write(b"head ")
        joined.write(b"body")
        assert sent.events == []
        await asyncio.sleep(0)
        joined.write(b"more")
        joined.flush()
        await asyncio.sleep(0)
        return sent.events

    assert asyncio.run(write()) == [b"head body", b"more"]


def test_nothing_is_left_behind_at_the_end() -> None:
    async def write() -> tuple[list[Any], list[Any], list[Any]]:
        closed, aborted, large = Recorded(), Recorded(), Recorded()
        for each in (closed, aborted, large):
            joined = JoinedWrites(each, asyncio.get_running_loop())
            joined.write(b"last")
            if each is closed:
                joined.close()
            elif each is aborted:
                joined.abort()
            else:
                joined.write(b"x" * MAX_HELD)
                assert len(each.events) == 1
        await asyncio.sleep(0)
        return closed.events, aborted.events, large.events

    closed, aborted, large = asyncio.run(write())
    assert closed == [b"last", "closed"]
    assert aborted == ["aborted"]
    assert large == [b"last" + b"x" * MAX_HELD]
