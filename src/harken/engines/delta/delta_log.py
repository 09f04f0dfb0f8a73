"""Delta tables through delta-rs: a version, its directory, the difference of two versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from harken.engines.delta import weighted
from harken.engines.delta.snapshot import Snapshot
from harken.errors import StorageError

PATTERN = frozenset("*?[]{}\\")
INEXACT = frozenset({"UPDATE", "DELETE", "MERGE"})
"""Operations whose change feed delta-rs (1.6) writes itself. It omits a row that exists before
and after, even if the number of copies changed: a wrong feed of a bag."""


def open_delta(
    path: str | Path, version: int | None = None, storage_options: dict[str, str] | None = None
) -> DeltaTable:
    try:
        return DeltaTable(address(path), version=version, storage_options=storage_options)
    except TableNotFoundError as error:
        if version is not None:  # the table may exist, but without a log for this version
            open_delta(path, storage_options=storage_options)
            raise no_such_version(path, version) from error
        raise StorageError(
            f"there is no Delta table at {path}",
            code="no-lake-table",
            hint="a Delta table is a directory with a _delta_log in it; check the path, or "
            "put the table back",
        ) from error
    except DeltaError as error:
        if version is None:
            raise StorageError(
                f"cannot open {path}: {str(error).splitlines()[0]}",
                code="cannot-open",
                hint="its log is damaged, or may not be read: restore it from a backup",
            ) from error
        raise no_such_version(path, version) from error


def address(path: str | Path) -> str:
    """The path as delta-rs and Spark read it, if both mean by it what we mean.

    Spark reads a pattern as other files, or with patterns switched off each file several times;
    delta-rs decodes `%20` as a blank.
    """
    text = str(path)
    if PATTERN & set(text) or ("://" not in text and unquote(text) != text):
        raise StorageError(
            f"{text} cannot hold a lake table: its name means something else to Spark or delta-rs",
            code="bad-path",
            hint=f"choose a directory without % and {' '.join(sorted(PATTERN))} in its name",
        )
    return text


def storage(path: str, storage_options: dict[str, str] | None) -> Any:
    """The table's directory, wherever it is, as a file system of its own."""
    if "://" not in path:
        return pa.fs.SubTreeFileSystem(path, pa.fs.LocalFileSystem())
    return pa.fs.PyFileSystem(DeltaStorageHandler(path, storage_options))


def committed_at(delta: DeltaTable, version: int) -> float | None:
    """When a version was written, in seconds of the Unix epoch, if the log still says."""
    try:
        history = delta.history(max(1, delta.version() - version + 1))
    except DeltaError:  # an entry of the log without a commit, which changes no row
        return None
    for entry in history:
        if entry["version"] == version and "timestamp" in entry:
            return float(entry["timestamp"]) / 1000
    return None


def file_difference(
    old: Snapshot, new: Snapshot, schema: pa.Schema, read: Callable[[str], pa.Table]
) -> pa.Table:
    """The net change between two versions, from the files that only one of them has."""
    before, after = ({file.path for file in each.files} for each in (old, new))
    parts = [weighted.empty(schema)]
    parts += [weighted.weigh(read(path), 1) for path in sorted(after - before)]
    parts += [weighted.weigh(read(path), -1) for path in sorted(before - after)]
    return weighted.consolidate(pa.concat_tables(parts))


def change_feed(
    delta: DeltaTable, from_version: int, to_version: int, schema: pa.Schema
) -> pa.Table:
    """Delta's change feed after one version up to another, made net.

    An update without effect appears as equal pre- and postimages, and a row that was changed
    twice appears four times.
    """
    feed = pa.table(delta.load_cdf(from_version + 1, to_version))
    # delta-rs returns string_view and binary_view, which few of Arrow's functions accept.
    kind = feed["_change_type"].cast(pa.string())
    rows = weighted.positive_zeros(feed.select(schema.names).cast(schema))
    added = pc.is_in(kind, value_set=pa.array(["insert", "update_postimage"]))
    return weighted.net(rows.filter(added), rows.filter(pc.invert(added)))


def has_exact_feed(delta: DeltaTable, from_version: int, to_version: int) -> bool:
    """Does the feed say how often each row was added and removed? False if the log does not name
    its writer."""
    try:
        history = delta.history(max(1, delta.version() - from_version))
    except DeltaError:
        return False
    entries = [each for each in history if from_version < each["version"] <= to_version]
    return len(entries) == to_version - from_version and not any(map(_is_inexact, entries))


def _is_inexact(entry: dict[str, Any]) -> bool:
    is_of_delta_rs = "delta-rs" in f"{entry.get('engineInfo')} {entry.get('clientVersion')}"
    # A WRITE with a predicate replaces only some of the rows.
    in_part = "predicate" in (entry.get("operationParameters") or {})
    return is_of_delta_rs and (entry.get("operation") in INEXACT or in_part)


def plain_path(uri: str) -> str:
    """delta-rs says `file:///tmp/a%20b/`; Arrow and Spark want `/tmp/a b`."""
    if not uri.startswith("file://"):
        return uri.rstrip("/")
    return unquote(urlsplit(uri).path).rstrip("/")


def no_such_version(path: str | Path, version: int) -> StorageError:
    return StorageError(
        f"{path} has no version {version}",
        code="no-such-version",
        hint="it was never made, or it was removed because nothing needed it any more",
    )
