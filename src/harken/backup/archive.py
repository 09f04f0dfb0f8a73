"""The file of a backup: a zip with a manifest, the database file, and its tables in the lake.

The manifest lists every other entry with its size and its SHA-256. Parquet files are stored as they
are, the rest is compressed.

Law: what is unpacked is what was packed, byte for byte, or nothing: an entry that the manifest does
not list, that leads elsewhere, or whose bytes differ is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from harken.errors import HarkenError, StorageError

MANIFEST = "manifest.json"
FORMAT = 1
"""Raised whenever an older version of Harken cannot restore what a newer one has written."""
LARGEST_MANIFEST = 64 * 2**20
CHUNK = 2**20
PLAIN = re.compile(r"database|lake(/[^/\\]+)+")


class NotABackup(StorageError):
    def __init__(self, path: Path, reason: str, hint: str = "make a new backup") -> None:
        super().__init__(f"{path} is no whole backup: {reason}", code="bad-backup", hint=hint)


def pack(directory: Path, path: Path, about: dict[str, Any]) -> None:
    """Write all files below a directory, and what is to be known about them, to a new file."""
    entries = {}
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each in sorted(directory.rglob("*")):
            if each.is_file():
                name = each.relative_to(directory).as_posix()
                entries[name] = _pack(archive, each, name)
        manifest = {"format": FORMAT, **about, "entries": entries}
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
    with open(path, "rb") as written:
        os.fsync(written.fileno())


def _pack(archive: zipfile.ZipFile, source: Path, name: str) -> dict[str, Any]:
    info = zipfile.ZipInfo.from_file(source, name, strict_timestamps=False)
    is_compressed = source.suffix == ".parquet"
    info.compress_type = zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED
    digest, size = hashlib.sha256(), 0
    with open(source, "rb") as read, archive.open(info, "w", force_zip64=True) as write:
        for chunk in _chunks(read):
            digest.update(chunk)
            size += len(chunk)
            write.write(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def read_manifest(path: Path) -> dict[str, Any]:
    """What a backup says of itself."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _manifest(archive, path)
    except FileNotFoundError:
        raise StorageError(
            f"there is no file {path}", code="cannot-open", hint="check the path of the backup"
        ) from None
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise NotABackup(path, _reason(error)) from error


def unpack(path: Path, directory: Path) -> dict[str, Any]:
    """Write the files of a backup into an empty directory; returns the manifest."""
    read_manifest(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive, path)
            names = {info.filename for info in archive.infolist()} - {MANIFEST}
            listed: dict[str, Any] = manifest["entries"]
            if names != listed.keys():
                odd = sorted(names ^ listed.keys())[0]
                raise NotABackup(path, f"its manifest and its entries differ in {odd}")
            for name, about in listed.items():
                _unpack(archive, name, about, directory, path)
            return manifest
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError) as error:
        raise NotABackup(path, _reason(error)) from error


def _unpack(
    archive: zipfile.ZipFile, name: str, about: dict[str, Any], directory: Path, path: Path
) -> None:
    target = directory / PurePosixPath(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), int(about["bytes"])
    with archive.open(name) as read, open(target, "xb") as write:
        for chunk in _chunks(read):
            left -= len(chunk)
            if left < 0:
                raise NotABackup(path, f"{name} is larger than its manifest says")
            digest.update(chunk)
            write.write(chunk)
        os.fsync(write.fileno())
    if left or digest.hexdigest() != about["sha256"]:
        raise NotABackup(path, f"{name} was damaged")


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        if archive.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
            raise NotABackup(path, "its manifest is too large")
        found = json.loads(archive.read(MANIFEST))
        version, entries = found["format"], found["entries"]
        for name, about in entries.items():
            if not is_plain(name):
                raise NotABackup(path, f"it has an entry {name!r}")
            if not isinstance(about["bytes"], int) or not isinstance(about["sha256"], str):
                raise NotABackup(path, f"its manifest is wrong about {name}")
    except HarkenError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotABackup(path, "it has no manifest of ours") from error
    if version != FORMAT:
        raise StorageError(
            f"{path} has format {version}, and this version of Harken reads only {FORMAT}",
            code="newer-format",
            hint="restore it with the version of Harken that made it, or a later one",
        )
    if "database" not in entries:
        raise NotABackup(path, "it has no database")
    return dict(found)


def is_plain(name: str) -> bool:
    """Is this the name of an entry that stays inside its directory?

    >>> is_plain("lake/price/part-1.parquet"), is_plain("lake/../../etc/passwd"), is_plain("/x")
    (True, False, False)
    """
    return bool(PLAIN.fullmatch(name)) and not {".", ".."} & set(name.split("/"))


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(CHUNK):
        yield chunk


def _reason(error: Exception) -> str:
    said = str(error) or type(error).__name__
    return said[:1].lower() + said[1:]
