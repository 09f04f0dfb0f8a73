"""Requests made from the description of the API, right ones and wrong ones: no answer is a failure
of the service, and each is of a form that the description promises."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import harken
from harken.server.openapi import description
from tests.harness.patience import PATIENCE
from tests.server.serving import SCHEMA, Served

TOKEN = "generated"
STREAMS = r"/events$"
NIGHTLY = bool(os.environ.get("HARKEN_NIGHTLY"))
EXAMPLES = 100 if NIGHTLY else 2
FAILURES = {"internal", "storage"}
"""Codes of errors that no request may cause."""
CHECKED = [content_type_conformance, response_schema_conformance, status_code_conformance]
schema = schemathesis.openapi.from_dict(json.loads(description())).exclude(path_regex=STREAMS)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("generated") / "shop.db")
    with harken.connect(path) as db:
        db.sql(SCHEMA)
        db.continual("few", "SELECT item FROM low", trigger="EVERY DAY", notify="LOG 'ops'")
        db.users.add("ann", role="author", password="correct horse battery")
    served = Served(path, TOKEN)
    yield served.url
    served.stop()


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not NIGHTLY,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_generated_request_is_answered(case: Any, address: str) -> None:
    answer = case.call(
        base_url=address, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
    )
    case.validate_response(answer, checks=CHECKED)
    if answer.status_code >= 400:
        problem = answer.json()
        assert problem["code"] not in FAILURES, problem
        assert problem["status"] == answer.status_code
