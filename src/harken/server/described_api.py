"""The description of the API (OpenAPI), and the page that shows it at `/docs`.

The page is made here, from the description: it loads nothing from elsewhere and runs no script.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, Response

from harken.server.api_page import api_page
from harken.server.models import Problem
from harken.server.resources.described import with_examples

ABOUT = """\
Everything that the console does, and more: views, their snapshots, and exactly what each
transaction changes in them; continual queries, sources, users and rights.

Errors are problem details (`application/problem+json`) with a `code` that never changes its
meaning. Lists come in pages: send the member `next` as `cursor`. What is read has an `ETag`, for
`If-None-Match` and `If-Match`. A POST may carry an `Idempotency-Key`, and is then carried out once.
Integers beyond 2^53 and decimals are texts, so that JavaScript loses no digit."""
SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of the service, or an API token of an account.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "harken_session",
        "description": "The cookie of the console. Changes also send the header X-CSRF.",
    },
}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class DescribedApi(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            found = get_openapi(
                title=self.title, version=self.version, description=ABOUT, routes=self.routes
            )
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema()
            found["components"]["securitySchemes"] = SECURITY
            found["security"] = [{}, *({name: []} for name in SECURITY)]
            self.openapi_schema = with_examples(found)
        return self.openapi_schema


def documentation_routes() -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/docs")
    async def documentation(request: Request) -> Response:
        page = api_page(request.app.openapi())
        return HTMLResponse(page, headers={"content-security-policy": POLICY})

    return routes
