"""How a client enters a stream: the position it starts from, and a place among the streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harken.server.feeds import Feed
from harken.server.service import Service, position_of


async def start_position(
    service: Service, since: int | None, last_event_id: str | None
) -> int | None:
    """The position a stream starts from. A position that does not exist yet is an error of a
    program; from a browser it only shows that the database was replaced."""
    start = position_of(last_event_id)
    if start is None and since is not None:
        await service.check_position(since)
        return since
    return start


async def enter_stream(
    service: Service, views: Sequence[str], where: str | None = None
) -> tuple[list[Feed], Callable[[], None]]:
    """Take a slot and open the feeds; the second result releases both."""
    leave_place = service.streams.acquire()
    try:
        feeds, leave_feeds = await service.enter(views, where)
    except BaseException:
        leave_place()
        raise

    def leave() -> None:
        leave_feeds()
        leave_place()

    return feeds, leave
