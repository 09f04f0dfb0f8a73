"""The file formats of a directory: Parquet, CSV with a header, JSON with one object per line.

Law: a file is read with the columns of its schema, or rejected as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from harken.errors import EngineError, StorageError, TypeFault

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}


def look_at_directory(
    directory: Path, format: str | None, schema: pa.Schema | None
) -> tuple[str, pa.Schema]:
    """The format of the directory's files, and their columns."""
    format = format or format_of(directory)
    return format, schema or schema_of(directory, format)


def format_of(directory: Path) -> str:
    found = {format for file in _files(directory) if (format := _suggested(file))}
    if len(found) != 1:
        raise EngineError(
            f"{directory} has files of {len(found)} formats"
            if found
            else f"{directory} has no files whose names tell their format",
            code="unknown-format",
            hint='say which: db.lake(name, path, key=[...], format="csv")',
        )
    return found.pop()


def _files(directory: Path) -> list[Path]:
    return sorted(
        file
        for file in directory.rglob("*")
        if file.is_file() and not file.name.startswith(("_", "."))
    )


def _suggested(file: Path) -> str | None:
    return SUFFIXES.get(file.suffix.lower())


def schema_of(directory: Path, format: str) -> pa.Schema:
    every = _files(directory)
    files = [str(file) for file in every if _suggested(file) == format] or list(map(str, every))
    if not files:
        raise EngineError(
            f"{directory} has no files yet, so their columns are not known",
            code="unknown-format",
            hint="give them: db.lake(name, path, key=[...], schema=pyarrow.schema([...]))",
        )
    return schema_of_file(Path(files[0]), format)


def schema_of_file(path: Path, format: str) -> pa.Schema:
    from pyarrow import dataset

    try:
        if format == "json":
            check_objects(path)
        return dataset.dataset([str(path)], format=format).schema.remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"cannot read {path} as {format}: {error}",
            code="bad-file",
            hint="mend the file or move it away",
        ) from error


def check_format(format: str) -> None:
    if format not in READERS:
        raise StorageError(
            f"files of format {format!r} cannot be read",
            code="unknown-format",
            hint=f"the formats are {', '.join(sorted(READERS))}",
        )


def check_schema(schema: object) -> None:
    if schema is not None and not hasattr(schema, "names"):
        raise TypeFault(
            f"{type(schema).__name__} is no schema",
            code="bad-value",
            hint='schema=pyarrow.schema([("item", pyarrow.string()), ...])',
        )


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    rows = pq.ParquetFile(path).read(columns=schema.names)
    for field in schema:
        found = rows.schema.field(field.name).type
        if _kind(found) != _kind(field.type):
            raise pa.ArrowInvalid(f"the column {field.name} is {found} there, not {field.type}")
    return rows


def _kind(type_: pa.DataType) -> str:
    """Values of the same kind can be cast into each other without changing."""
    kinds = {
        "integer": pa.types.is_integer,
        "floating": pa.types.is_floating,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
        "decimal": pa.types.is_decimal,
    }
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    return next((name for name, test in kinds.items() if test(type_)), str(type_))


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """With a header; an empty field is NULL, a quoted empty one is empty text."""
    return pa.csv.read_csv(
        path,
        convert_options=pa.csv.ConvertOptions(
            column_types=schema,
            include_columns=schema.names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
    )


def _read_json(path: Path, schema: pa.Schema) -> pa.Table:
    """One object per line; a missing field is NULL."""
    if not path.stat().st_size:
        return schema.empty_table()
    check_objects(path)
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pa.json.read_json(path, parse_options=options)


def check_objects(path: Path) -> None:
    """Arrow's reader crashes on a file that begins with anything but an object."""
    with path.open("rb") as lines:
        first = next((line for line in lines if line.strip()), b"{")
    if not first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        raise pa.ArrowInvalid("each line must be an object")


READERS: Mapping[str, Callable[[Path, pa.Schema], pa.Table]] = {
    "csv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
}
