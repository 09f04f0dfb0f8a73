"""The description of the API is complete, and true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from jsonschema_rs import validator_for

from harken.server.api_page import api_page
from harken.server.app import make_app
from harken.server.openapi import description
from harken.server.service import Service
from tests.server.serving import Served

ROOT = Path(__file__).parents[2]
DESCRIBED = json.loads(description())
OPERATIONS = [
    (method, path, operation)
    for path, operations in DESCRIBED["paths"].items()
    for method, operation in operations.items()
]
NAMES = [f"{method.upper()} {path}" for method, path, _ in OPERATIONS]


def test_every_route_is_described() -> None:
    app = make_app(Service(":memory:"))
    routes = {
        f"{method} {route.path}"
        for route in iter_route_contexts(app.routes)
        if route.path.startswith("/api/") and route.methods
        for method in route.methods
        if route.include_in_schema
    }
    assert routes == set(NAMES)
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=NAMES)
def test_every_route_says_what_it_does_and_answers(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    assert operation["description"].endswith(".")
    assert operation["tags"]
    answers = operation["responses"]
    assert {"400", "401", "403", "404", "409", "413", "503", "4XX", "5XX"} <= set(answers)
    assert list(answers["404"]["content"]) == ["application/problem+json"]
    content = next(answers[status] for status in answers if status.startswith("2")).get("content")
    if content is None or "application/json" not in content:
        return  # nothing, or a stream
    schema = {**content["application/json"]["schema"], "components": DESCRIBED["components"]}
    example = content["application/json"].get("example")
    assert example is not None, "an answer has an example"
    errors = [each.message for each in validator_for(schema).iter_errors(example)]
    assert errors == []


def test_every_reference_leads_somewhere() -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DESCRIBED)))
    assert named <= set(DESCRIBED["components"]["schemas"])


def test_every_resource_is_documented_with_an_example() -> None:
    page = (ROOT / "docs/api.md").read_text("utf-8")
    missing = [name for name in NAMES if f"`{name.replace('/api/v1', '', 1)}`" not in page]
    assert missing == []


def test_the_page_of_the_api_loads_nothing_from_elsewhere(served: Served) -> None:
    page = api_page(DESCRIBED)
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    for name in NAMES:
        assert name.split()[1] in page
    assert 'lang="en"' in page
