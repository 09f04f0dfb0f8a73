"""Every kind of outside source as a data source of PySpark, for batches and for streams.

    harken.register_data_sources(spark)
    spark.read.format("harken_html").option("url", "https://...").load()
    spark.readStream.format("harken_json").option("state", "/data/state").option(...).load()

A batch asks the source for the columns and rows that it needs, where the kind can answer that. A
stream reads the source again at each trigger, and its rows are the changes, with Spark's columns
`_change_type`, `_commit_version` and `_commit_timestamp`; the option `state` names a directory of
its own, in which it keeps what it has seen.

Law: the changes of a stream up to a version, applied in their order, are the rows of the source at
that version; and a batch that Spark repeats has the same rows.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    SimpleDataSourceStreamReader,
)

from harken.errors import SourceFault, offered
from harken.sources.change_journal import ChangeJournal
from harken.sources.kinds import kind_names, outside_kind
from harken.sources.option_values import option_value
from harken.sources.outside import Answering, Condition, Context, OutsideKind, Polled, Snapshot
from harken.sources.spark_schemas import CHANGE_COLUMNS, arrow_of, ddl_of

PREFIX = "harken_"
OWN_OPTIONS = ("state", "key", "path")
"""Options of the adapter itself. `load('...')` sets `path`, which many kinds have, too."""
PUSHES = "spark.sql.python.filterPushdown.enabled"
OPERATORS: Mapping[type[Filter], str] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def register_data_sources(spark: SparkSession, *, allow_private_addresses: bool = False) -> None:
    """Let a session read every kind as `harken_KIND`, those of the user's own included. Whether
    private addresses may be reached can also be said in the environment
    (`HARKEN_ALLOW_PRIVATE_ADDRESSES=1`). If `spark.sql.python.filterPushdown.enabled` is true at
    this moment, filters are pushed to the databases that they are asked of."""
    allowed = allow_private_addresses or os.environ.get("HARKEN_ALLOW_PRIVATE_ADDRESSES") == "1"
    pushes = spark.conf.get(PUSHES, "false") == "true"
    for name in kind_names():
        found = data_source(name, allow_private_addresses=allowed, pushes=pushes)
        spark.dataSource.register(found)


def data_source(
    kind: str, *, allow_private_addresses: bool = False, pushes: bool = False
) -> type[DataSource]:
    """The class that Spark makes objects of, in processes of its own. Only where the session lets
    data sources see filters, `pushes`, may a reader have a method for them."""
    found = outside_kind(kind)

    class KindDataSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"{PREFIX}{kind}"

        def schema(self) -> str:
            source = opened(found, self.options, allow_private_addresses)
            try:
                columns = source.schema().columns
            finally:
                source.close()
            return ddl_of(pa.schema([*columns, *CHANGE_COLUMNS]) if self._streams else columns)

        @property
        def _streams(self) -> bool:
            return "state" in self.options

        def reader(self, schema: Any) -> DataSourceReader:
            made = FilteredReader if pushes else BatchReader
            return made(found, dict(self.options), arrow_of(schema), allow_private_addresses)

        def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
            options = dict(self.options)
            return StreamReader(found, options, arrow_of(schema), allow_private_addresses)

    return KindDataSource


def opened(kind: OutsideKind, options: Mapping[str, str], allow_private_addresses: bool) -> Polled:
    """An open source. Spark writes the names of options in any case."""
    by_case = {option.name.lower(): option for option in kind.options}
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in by_case and name not in OWN_OPTIONS:
            raise SourceFault(
                f"the kind {kind.name} has no option {name}",
                code="bad-option",
                hint=offered(name, [each.name for each in kind.options], "options"),
            )
    values = {
        option.name: option_value(option, given.get(name), resolved, kind.name)
        for name, option in by_case.items()
    }
    context = Context(
        now=lambda: datetime.datetime.now(datetime.UTC),
        name=kind.name,
        allow_private_addresses=allow_private_addresses,
    )
    found = kind.open(values, context, "poll").polled
    assert found is not None
    return found


def resolved(text: str) -> str:
    """`secret:name` stands for a value in the environment of the processes of Spark."""
    if not text.startswith("secret:"):
        return text
    name = "HARKEN_SECRET_" + text.removeprefix("secret:").upper()
    if name not in os.environ:
        raise SourceFault(
            f"there is no secret {text.removeprefix('secret:')}",
            code="bad-option",
            hint=f"set {name} in the environment of Spark",
        )
    return os.environ[name]


class BatchReader(DataSourceReader):
    """Reads all rows, or those that Spark asks for, in one task."""

    def __init__(
        self, kind: OutsideKind, options: Mapping[str, str], schema: pa.Schema, allowed: bool
    ) -> None:
        self._kind, self._options, self._schema, self._allowed = kind, options, schema, allowed
        self._conditions: list[Condition] = []

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        source = opened(self._kind, self._options, self._allowed)
        try:
            if isinstance(source, Answering):
                batches = source.question(self._schema.names, self._conditions).batches()
            else:
                batches = whole(source.snapshot()).batches
            for each in batches:
                yield as_schema(each, self._schema)
        finally:
            source.close()


class FilteredReader(BatchReader):
    """Where the session lets data sources see the filters of a query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Spark tests every row again, because an answer may have more."""
        self._conditions = [found for each in filters if (found := condition(each)) is not None]
        return filters


class StreamReader(SimpleDataSourceStreamReader):
    """Each trigger reads the source again; what changed is written down before Spark sees it."""

    def __init__(
        self, kind: OutsideKind, options: Mapping[str, str], schema: pa.Schema, allowed: bool
    ) -> None:
        self._schema = schema
        state = options.get("state")
        if not state:
            raise SourceFault(
                "a stream needs the option state, a directory in which it keeps what it has seen",
                code="bad-option",
            )
        key = tuple(filter(None, (each.strip() for each in options.get("key", "").split(","))))
        self._kind, self._options, self._allowed = kind, dict(options), allowed
        self._opened: Polled | None = None
        self._journal = ChangeJournal(state, key or None)

    def __getstate__(self) -> dict[str, Any]:
        """Spark sends it to a process of its own, which opens the source again."""
        return {**self.__dict__, "_opened": None}

    @property
    def _source(self) -> Polled:
        if self._opened is None:
            self._opened = opened(self._kind, self._options, self._allowed)
        return self._opened

    def initialOffset(self) -> dict[str, int]:
        return {"version": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        if self._journal.version <= start["version"]:
            snapshot = self._source.snapshot(self._journal.position)
            if snapshot is not None:
                self._journal.take_in(snapshot)
        end = {"version": max(self._journal.version, start["version"])}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:
        """Spark copies the iterator, so it is that of a list."""
        versions = range(start["version"] + 1, end["version"] + 1)
        batches = [
            each for version in versions for each in self._journal.changes(version).to_batches()
        ]
        return iter([as_schema(each, self._schema) for each in batches])

    def commit(self, end: dict[str, int]) -> None:
        self._journal.forget(end["version"])


def whole(snapshot: Snapshot | None) -> Snapshot:
    assert snapshot is not None  # it was not asked for changes
    return snapshot


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [batch.column(each.name).cast(each.type) for each in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def condition(given: Filter) -> Condition | None:
    """A filter of Spark as one of ours; None for what no kind can push."""
    inner = given.child if isinstance(given, Not) else given
    attribute: tuple[str, ...] = getattr(inner, "attribute", ())
    if len(attribute) != 1:
        return None
    (column,) = attribute
    if isinstance(given, Not):
        return Condition(column, "<>", (inner.value,)) if isinstance(inner, EqualTo) else None
    if isinstance(given, IsNull):
        return Condition(column, "is null")
    if isinstance(given, IsNotNull):
        return Condition(column, "is not null")
    if isinstance(given, In):
        return Condition(column, "in", tuple(each for each in given.value if each is not None))
    operator = OPERATORS.get(type(given))
    return None if operator is None else Condition(column, operator, (given.value,))  # type: ignore[arg-type, attr-defined]
