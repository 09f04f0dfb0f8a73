"""The tables of TPC-H in the lake, for Harken and for Spark alike: the same Delta tables.

Harken has them as tables of its own; Spark reads the files of the version that Harken uses, under
the names used in the queries.

Law: `recomputed` answers from the tables as they are after the last commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow

import harken
from harken.api.step import process_inputs
from harken.bench.tpch import SCHEMA, query
from harken.values.rows import Row

Change: TypeAlias = tuple[pyarrow.Table, pyarrow.Table]
"""The inserted rows, and the deleted ones."""


class Undone(Exception):
    """Raised to roll a transaction back."""


class Lakehouse:
    def __init__(self, tables: Mapping[str, pyarrow.Table], spark: Any, directory: Path) -> None:
        self._path = directory / "tpch.db"
        self._spark = spark
        self._open()
        self.db.sql(re.sub(r"\n\);", "\n) USING lake;", SCHEMA))
        self._look()
        for name, rows in tables.items():
            self._fill(name, rows)
        self.db.step()

    def _open(self) -> None:
        self.db = harken.connect(self._path, spark=self._spark)
        self._engine = self.db.internals.engine

    def _look(self) -> None:
        self._lake_relations = {
            lake_relation.relation.name: lake_relation
            for lake_relation in self._engine.lake_relations.values()
        }

    def reopen(self) -> None:
        """Start over with an empty cache."""
        self.db.close()
        self._open()
        self._look()

    def _fill(self, name: str, rows: pyarrow.Table) -> None:
        """Write to the table from outside, because inserting all rows one by one would be slow."""
        lake_relation = self._lake_relations[name]
        self.db.begin()
        self._engine.establish(lake_relation)
        self.db.commit()
        table = lake_relation.own
        table.commit(rows, rows.slice(0, 0), expected_version=table.version)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self.db.load(table, rows)

    def run(self, text: str) -> None:
        self.db.sql(text)

    def add_view(self, name: str) -> None:
        self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query(name)}")

    def drop_view(self, name: str) -> None:
        self.db.sql(f"DROP MATERIALIZED VIEW {name}")

    def kept(self, name: str) -> list[Row]:
        return list(self.db.sql(f"SELECT * FROM {name}").rows)

    @contextmanager
    def writing_later(self) -> Iterator[None]:
        """A commit inside leaves the lake to `write`."""
        at_once = self._engine.after_commit
        self._engine.after_commit = lambda: None  # type: ignore[method-assign]
        try:
            yield
        finally:
            self._engine.after_commit = at_once  # type: ignore[method-assign]

    def write(self) -> None:
        self._engine.after_commit()

    def show_spark(self) -> None:
        """Show Spark the present tables."""
        self._engine.flush()
        for name, lake_relation in self._lake_relations.items():
            frame = self._engine.reader.frame(lake_relation.table, lake_relation.place.version)
            frame.createOrReplaceTempView(name)

    @contextmanager
    def written(self, changes: Mapping[str, Change]) -> Iterator[None]:
        """Another program writes to the tables, and in the end restores them. All of this together
        is no change, and Harken moves on without looking at it."""
        self._write_outside(changes)
        yield
        self._write_outside({name: (minus, plus) for name, (plus, minus) in changes.items()})
        with self.db.transaction():
            process_inputs(self.db.internals.runtime, self.db.internals.network)
            self.db.internals.network.captures.forget_large()

    def _write_outside(self, changes: Mapping[str, Change]) -> None:
        """Deletions first, then insertions: both at once take twice the memory."""
        self._engine.flush()
        for name, (plus, minus) in changes.items():
            table = self._lake_relations[name].own
            nothing = plus.slice(0, 0)
            for come, go in ((nothing, minus), (plus, nothing)):
                table.commit(come, go, expected_version=table.version)

    @contextmanager
    def undone_step(self) -> Iterator[None]:
        """In the block, what was written is processed but not checked yet; then it is rolled
        back."""
        network = self.db.internals.network
        try:
            with suppress(Undone), self.db.transaction():
                process_inputs(self.db.internals.runtime, network)
                yield
                raise Undone
        finally:
            network.captures.forget_large()

    def recomputed(self, name: str) -> list[Row]:
        return [tuple(row) for row in self._spark.sql(query(name)).collect()]

    def interrupt(self) -> None:
        """Make Spark's running work fail."""
        self._spark.interruptAll()

    def close(self) -> None:
        self.db.close()
