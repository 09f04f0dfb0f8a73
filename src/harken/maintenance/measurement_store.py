"""The measurements of all nodes, kept in the database file, so that they survive the session.

A row holds the measurements of one node as JSON, with its id, a digest of its program, and a
fingerprint of the machine. Rows are written only with commits that write anyway, and only after a
new measurement; they are read when a wave first needs them. Measurements of another machine or of
another program are ignored. A database in memory stores nothing.

Law: measurements decide what a change costs, never what it is; so losing them is harmless.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable

from harken.engines.protocol import Connection, Field, RecordKind
from harken.ir.clauses import Program
from harken.ir.printer import print_program
from harken.maintenance import capacities
from harken.maintenance.measurements import Experience

MEASUREMENTS = RecordKind(
    "harken_measurements",
    (
        Field("node", "text"),
        Field("program", "text"),
        Field("machine", "text"),
        Field("measured", "text"),
    ),
    key=("node",),
)


class MeasurementStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stored: dict[str, tuple[str, str]] | None = None
        """The program and measurements of each node that this machine stored in the file."""
        self._unsaved: dict[str, tuple[Program, Experience]] = {}

    @property
    def has_any(self) -> bool:
        """Whether an earlier session measured anything."""
        return bool(self._load())

    def find(self, node_id: str, program: Callable[[], Program]) -> Experience | None:
        """The measurements of a node from an earlier session, returned once."""
        found = self._load().pop(node_id, None)
        if found is None or found[0] != _digest(program()):
            return None
        return Experience.from_json(json.loads(found[1]))

    def note(self, node_id: str, program: Program, measured: Experience) -> None:
        """A node was measured. The measurement is written with the next commit if it is new."""
        if measured.is_news and not self._connection.in_memory:
            self._unsaved[node_id] = (program, measured)

    def write(self) -> None:
        """Write the new measurements, in the open transaction."""
        if not self._unsaved or self._connection.read_only:
            return
        records = self._connection.records
        if not records.exist(MEASUREMENTS):
            records.make_room(MEASUREMENTS)
        for node_id, (program, measured) in self._unsaved.items():
            text = json.dumps(measured.to_json(), separators=(",", ":"))
            measured.is_news = False
            if len(text) <= capacities.MOST_STORED_CHARACTERS:
                row = (node_id, _digest(program), machine(), text)
                records.add(MEASUREMENTS, row, replace=True)
        self._unsaved.clear()
        records.remove_oldest(MEASUREMENTS, capacities.MOST_STORED_NODES)

    def _load(self) -> dict[str, tuple[str, str]]:
        if self._stored is None:
            self._stored = {}
            records = self._connection.records
            if not self._connection.in_memory and records.exist(MEASUREMENTS):
                rows = records.find(MEASUREMENTS, {"machine": machine()})
                self._stored = {node: (program, text) for node, program, _, text in rows}
        return self._stored


def machine() -> str:
    """A fingerprint of the machine: measurements of another say little."""
    parts = (platform.node(), platform.machine(), str(os.cpu_count()), platform.python_version())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _digest(program: Program) -> str:
    return hashlib.sha256(print_program(program).encode()).hexdigest()[:16]
