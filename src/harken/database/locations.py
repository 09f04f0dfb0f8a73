"""Where external tables may be: the setting `lake_roots`.

Law: a location is looked at only if it is in one of the roots after all symbolic links are
resolved. The error for any other location is the same whether something exists there or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from harken.errors import LanguageError, Span

REMOTE = "://"
EVERYWHERE = Path("/")


class Roots:
    """Directories on this machine, and addresses such as `s3://bucket/sales`."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._directories = [Path(each).resolve() for each in roots if REMOTE not in each]
        self._addresses = [urlsplit(each) for each in roots if REMOTE in each]

    def locate(self, location: str, span: Span | None = None) -> str:
        """Resolve a location to a directory or address, if it may be read."""
        local = _local_path(location)
        if local is None:
            if not any(_lies_below(urlsplit(location), root) for root in self._addresses):
                raise _not_allowed(location, span)
            return location
        found = self._resolved(local)
        if found is None:
            raise _not_allowed(location, span)
        return str(found)

    def check_contents(
        self, place: str, files: Callable[[], Iterable[str]], span: Span | None = None
    ) -> None:
        """Check that nothing in an allowed directory leads outside the roots: neither a symbolic
        link nor a file named in its log."""
        if REMOTE in place or EVERYWHERE in self._directories:
            return
        named = (Path(place, unquote(_local_path(file) or file)) for file in files())
        for each in (*_links(place), *named):
            if self._resolved(each) is None:
                raise _not_allowed(place, span)

    def _resolved(self, path: str | Path) -> Path | None:
        """None if it is outside the roots, or not a valid path."""
        try:
            found = Path(path).resolve()
        except (OSError, RuntimeError, ValueError):  # a cycle of links, or a NUL
            return None
        return found if any(found.is_relative_to(root) for root in self._directories) else None


def _local_path(location: str) -> str | None:
    """The path of a location on this machine; None for an address elsewhere.

    >>> _local_path("data/sales"), _local_path("file:///data/a%20b"), _local_path("s3://bucket/a")
    ('data/sales', '/data/a b', None)
    """
    if REMOTE not in location:
        return location
    try:
        parts = urlsplit(location)
    except ValueError:
        return None
    is_file = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return unquote(parts.path) if is_file else None


def _lies_below(given: SplitResult, root: SplitResult) -> bool:
    """
    >>> root = urlsplit("s3://bucket/sales")
    >>> _lies_below(urlsplit("S3://bucket/sales/2026"), root)
    True
    >>> _lies_below(urlsplit("s3://bucket/sales/../secret"), root)
    False
    """
    segments, above = (
        [each for each in unquote(parts.path).split("/") if each] for parts in (given, root)
    )
    return (
        (given.scheme, given.netloc) == (root.scheme, root.netloc)
        and not {".", ".."} & set(segments)
        and segments[: len(above)] == above
    )


def _links(directory: str) -> Iterator[Path]:
    for above, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(above, name)
            if path.is_symlink():
                yield path


def _not_allowed(location: str, span: Span | None) -> LanguageError:
    return LanguageError(
        f"tables at {location} are not allowed here",
        code="not-allowed",
        span=span,
        hint="whoever starts Harken can allow it with --set lake_roots=PLACE, where PLACE is "
        "a directory or an address such as s3://bucket/sales",
    )
