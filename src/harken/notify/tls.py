"""The certificates that channels trust, read once: that takes longer than sending a message."""

from __future__ import annotations

import os
import ssl
from functools import cache


def trusted() -> ssl.SSLContext:
    """Those of the machine, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(file: str | None, directory: str | None) -> ssl.SSLContext:
    return ssl.create_default_context()
