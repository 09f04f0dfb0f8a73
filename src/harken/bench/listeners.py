"""`python -m harken.bench.listeners URL VIEW COUNT`: this many clients that follow a view.

Prints `ready` when all have its rows, and then each position as soon as all have received it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from urllib.parse import urlsplit

from harken.server.server_sent_events import address

ROOM = 2**24


async def listen(url: str, view: str, count: int) -> None:
    have: Counter[str] = Counter()
    ready = 0

    async def follow() -> None:
        nonlocal ready
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=ROOM)
        writer.write(
            f"GET {address(view, '/events')} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
        )
        first = True
        async for line in reader:
            if not line.startswith(b"id: "):
                continue
            if first:
                first, ready = False, ready + 1
                tell("ready", ready)
                continue
            position = line[4:].decode().strip()
            have[position] += 1
            tell(position, have[position])

    def tell(what: str, how_many: int) -> None:
        if how_many == count:
            print(what, flush=True)

    await asyncio.gather(*(follow() for _ in range(count)))


if __name__ == "__main__":
    asyncio.run(listen(sys.argv[1], sys.argv[2], int(sys.argv[3])))
