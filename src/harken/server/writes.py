"""What a request may ask the writing session to do, and the JSON that answers it.

Both ways to a transaction use these functions: the routes of the API, and the direct path.
"""

from __future__ import annotations

from typing import Any

from harken.api.database import Database
from harken.api.json_changes import Rows, apply
from harken.database.json_values import parameters_from_json
from harken.database.results import to_json
from harken.errors import IntegrityError
from harken.server.service import Service


async def transact(service: Service, insert: Rows, delete: Rows) -> str:
    """Delete rows and insert rows, all or none."""
    _, position = await service.write(lambda db: apply(db, insert, delete))
    return to_json({"position": position})


async def run_sql(service: Service, text: str, values: list[Any] | dict[str, Any] | None) -> str:
    """Run statements; those that leave a transaction open are rolled back."""

    def work(db: Database) -> list[str]:
        results = db.sql(text, parameters_from_json(values))
        lines = [line for result in results for line in result.json_lines()]
        if db.in_transaction:
            raise IntegrityError(
                "the text leaves a transaction open, so all of it was rolled back",
                code="transaction",
                hint="end it with COMMIT",
            )
        return lines

    lines, position = await service.write(work)
    return f'{{"results":[{",".join(lines)}],"position":{position}}}'
