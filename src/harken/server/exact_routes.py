"""Routes that read the numbers in a body with all their digits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from harken.database.json_values import read_json


class ExactRequest(Request):
    """Reads the numbers in a body with all their digits, in a thread that does not hold up other
    requests."""

    async def json(self) -> Any:
        return await asyncio.to_thread(read_json, await self.body())


class ExactRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_exactly(request: Request) -> Response:
            return await handle(ExactRequest(request.scope, request.receive))

        return handle_exactly
