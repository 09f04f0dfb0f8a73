"""A service that answers every request with its own body: what HTTP alone costs.

    python -m harken.bench.echo

It runs in the server of `harken serve`, with its connections and limits, and prints its address.
"""

from __future__ import annotations

import uvicorn
from starlette.types import Receive, Scope, Send

from harken.server.connections import connection_factory
from harken.server.server_process import listen
from harken.settings import Settings


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        echo,
        http=connection_factory(Settings(serving=True)),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_level="error",
    )
    print(f"echoing at http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
