"""Functions of texts that only SQL has, with the meaning of Spark's."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

from harken import limits
from harken.values.java_patterns import compiled
from harken.values.random_values import digest, fraction

_CODES = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_SILENT = "7"
"""H and W do not part two letters that sound alike; vowels, whose code is 0, do."""
_BITS = 2**64 - 1


def _translate(text: str, old: str, new: str) -> str:
    """Each character becomes the one at its place; one that has none goes."""
    table: dict[int, str | None] = {}
    for place, each in enumerate(old):
        table.setdefault(ord(each), new[place] if place < len(new) else None)
    return text.translate(table)


def substring(text: str, start: int, length: int | None = None) -> str:
    """From 1; 0 counts as 1; a negative start counts from the end."""
    if start > 0:
        begin = start - 1
    elif start == 0:
        begin = 0
    else:
        begin = len(text) + start
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _overlay(text: str, new: str, start: int, length: int) -> str:
    """A negative length is that of the new text. Places before the text count from its end."""
    end = start + (len(new) if length < 0 else length)
    return substring(text, 1, start - 1) + new + substring(text, end)


def _position_from(part: str, text: str, start: int) -> int:
    """Nothing is found at the very start, wherever one begins to look."""
    if start > 0 and part:
        return text.find(part, start - 1) + 1
    return int(start > 0)


def _find_in_set(text: str, listed: str) -> int:
    parts = listed.split(",")
    return parts.index(text) + 1 if text in parts else 0


def _substring_index(text: str, delimiter: str, number: int) -> str:
    """What is before a delimiter, counted from the start, or after it, counted from the end."""
    if not delimiter or number == 0:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:number] if number > 0 else parts[number:])


def _levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        limits.check()
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def _soundex(text: str) -> str:
    if not text or text[0].upper() not in _CODES:
        return text
    found, last = text[0].upper(), _CODES[text[0].upper()]
    for each in text[1:]:
        code = _CODES.get(each.upper(), "0") if each.isascii() else "0"
        if code == _SILENT:
            continue
        if code not in ("0", last):
            found += code
        last = code
    return found[:4].ljust(4, "0")


def _sha2(text: str, bits: int) -> str | None:
    """NULL for a length that there is not."""
    if bits not in (0, 224, 256, 384, 512):
        return None
    return hashlib.new(f"sha{bits or 256}", text.encode()).hexdigest()


def _regexp_instr(text: str, pattern: str) -> int:
    found = compiled(pattern).search(text)
    return found.start + 1 if found else 0


def _regexp_substr(text: str, pattern: str) -> str | None:
    found = compiled(pattern).search(text)
    return found[0] if found else None


TEXT_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "translate": (_translate, 3),
    "overlay": (_overlay, 4),
    "position_from": (_position_from, 3),
    "find_in_set": (_find_in_set, 2),
    "substring_index": (_substring_index, 3),
    "levenshtein": (_levenshtein, 2),
    "soundex": (_soundex, 1),
    "octet_length": (lambda text: len(text.encode()), 1),
    "hex_of_text": (lambda text: text.encode().hex().upper(), 1),
    "hex_of_integer": (lambda value: f"{value & _BITS:X}", 1),
    "bin": (lambda value: f"{value & _BITS:b}", 1),
    "bit_count": (lambda value: (value & _BITS).bit_count(), 1),
    "md5": (digest, 1),
    "fraction": (lambda text: fraction(digest(text)), 1),
    "sha1": (lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), 1),
    "sha2": (_sha2, 2),
    "crc32": (lambda text: zlib.crc32(text.encode()), 1),
    "regexp_count": (lambda text, pattern: sum(1 for _ in compiled(pattern).finditer(text)), 2),
    "regexp_instr": (_regexp_instr, 2),
    "regexp_substr": (_regexp_substr, 2),
}
