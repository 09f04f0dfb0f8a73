"""The description of the API: `python -m harken.server.openapi > docs/openapi.json`."""

from __future__ import annotations

import json

from harken.server.app import make_app
from harken.server.service import Service


def description() -> str:
    schema = make_app(Service(":memory:")).openapi()
    return json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(description(), end="")
