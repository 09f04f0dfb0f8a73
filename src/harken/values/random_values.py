"""What `rand` and `uuid` draw: digits of a digest of the moment and of what tells rows apart."""

from __future__ import annotations

import hashlib
import re

DIGITS = 13
"""So many hexadecimal digits a double holds exactly, behind the point."""
UUID_PARTS = "^(.{8})(.{4}).(.{3}).(.{3})(.{12})$"
UUID = "$1-$2-4$3-a$4-$5"
"""Version 4, by chance, in the variant that all have."""

_PARTS, _FORM = re.compile(UUID_PARTS), UUID.replace("$", "\\")


def drawn(moment: int, text: str) -> str:
    return digest(f"{moment} {text}")


def digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def fraction(digits: str) -> float:
    """From 0 to below 1."""
    return int(digits[:DIGITS], 16) / float(16**DIGITS)


def uuid(digits: str) -> str:
    return _PARTS.sub(_FORM, digits)
