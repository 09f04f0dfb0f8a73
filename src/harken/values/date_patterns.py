"""Java's patterns of dates, which Spark's SQL has: a moment written as one says, and a text read.

    written(moment, "d. MMMM yyyy")              '5. January 2020'
    read("20200105 0930", "yyyyMMdd HHmm")       half past nine on that day

Law: what is written is what Java writes in UTC, and a text is read as Java reads it strictly: as
many digits as there are letters where there are two of them or more, and fields that agree. What is
not said of a date is that of the first of January 1970, as in Spark.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterator
from functools import lru_cache

import regex

from harken.errors import ArithmeticFault, EvaluationError
from harken.values import pattern_size
from harken.values.failures import bad_argument
from harken.values.matching import Pattern, compile_backtracking
from harken.values.pattern_size import shown

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = tuple(calendar.month_name[1:])
_RUN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.S)
_QUARTERS = ("1st", "2nd", "3rd", "4th")
_IN_UTC = {
    **dict.fromkeys(("X", "XX", "XXX", "XXXX", "XXXXX", "ZZZZZ"), "Z"),
    **dict.fromkeys(("xx", "xxxx", "Z", "ZZ", "ZZZ"), "+0000"),
    **dict.fromkeys(("xxx", "xxxxx"), "+00:00"),
    **dict.fromkeys(("O", "OOOO", "ZZZZ"), "GMT"),
    **dict.fromkeys(("z", "zz", "zzz", "VV"), "UTC"),
    **dict.fromkeys(("G", "GG", "GGG"), "AD"),
    "x": "+00",
    "zzzz": "Coordinated Universal Time",
    "GGGG": "Anno Domini",
}
"""What is the same of all moments here: zones, and the era."""


LONGEST = 1_000
"""Characters of a format. The longest in use have fewer than 50."""


@lru_cache(maxsize=256)
def _parts(pattern: str) -> tuple[tuple[str, str], ...]:
    """Runs of a letter, texts, and what opens and closes a part that may be missing in a text."""
    if len(pattern) > LONGEST:
        raise _too_large(pattern)
    return tuple(_taken_apart(pattern))


def _taken_apart(pattern: str) -> Iterator[tuple[str, str]]:
    depth = 0
    for run in _RUN.finditer(pattern):
        quoted, letter = run.groups()
        whole = run.group()
        if letter:
            yield "letters", whole
        elif quoted is not None:
            yield "text", quoted.replace("''", "'") or "'"
        elif whole in "[]":
            depth += 1 if whole == "[" else -1
            if depth < 0:
                raise bad_argument(f"a ] in the format {shown(pattern)!r} closes nothing")
            yield whole, whole
        elif whole in "'{}#":
            raise bad_argument(f"{whole} in the format {shown(pattern)!r} is not there")
        else:
            yield "text", whole


def _too_large(pattern: str) -> EvaluationError:
    return EvaluationError(
        f"the format '{shown(pattern)}' is too large",
        code="too-complex",
        hint=f"it may have {LONGEST:,} characters, and few parts inside others",
    )


def _refusal(letters: str) -> Exception:
    return ArithmeticFault(
        f"{letters} in a format of dates is not there",
        code="bad-value",
        hint="a format is written as yyyy-MM-dd HH:mm:ss, as in Spark",
    )


# --- writing -------------------------------------------------------------------------------


def written(moment: datetime.datetime, pattern: str) -> str:
    """
    >>> written(datetime.datetime(2020, 1, 5, 21, 30), "EEE d.M.yy, h:mm a 'o''clock'")
    "Sun 5.1.20, 9:30 PM o'clock"
    """
    return "".join(
        _written(part, moment) if kind == "letters" else part
        for kind, part in _parts(pattern)
        if kind not in "[]"
    )


def _written(letters: str, moment: datetime.datetime) -> str:
    width = len(letters)
    quarter = (moment.month + 2) // 3
    numbers = {
        "M": moment.month,
        "L": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "h": moment.hour % 12 or 12,
        "K": moment.hour % 12,
        "k": moment.hour or 24,
        "m": moment.minute,
        "s": moment.second,
        "D": moment.timetuple().tm_yday,
        "Q": quarter,
        "q": quarter,
    }
    match letters[0]:
        case "y" if width == 2:
            return f"{moment.year % 100:02}"
        case "y" if width <= 6:
            return f"{moment.year:0{width}}"
        case "M" | "L" if width in (3, 4):
            name = _MONTHS[moment.month - 1]
            return name if width == 4 else name[:3]
        case "Q" | "q" if width in (3, 4):
            return f"Q{quarter}" if width == 3 else f"{_QUARTERS[quarter - 1]} quarter"
        case "E" if width <= 4:
            name = DAYS[moment.weekday()].capitalize()
            return name if width == 4 else name[:3]
        case "S" if width <= 9:
            return f"{moment.microsecond:06}000"[:width]
        case "a" if width == 1:
            return "AM" if moment.hour < 12 else "PM"
        case letter if letter in numbers and width <= (3 if letter == "D" else 2):
            return f"{numbers[letter]:0{width}}"
        case _ if letters in _IN_UTC:
            return _IN_UTC[letters]
    raise _refusal(letters)


# --- reading -------------------------------------------------------------------------------

_MOST = dict(zip("MdDHhKkms", (12, 31, 366, 23, 12, 11, 24, 59, 59), strict=True))
_FROM_ONE = "MdDhk"
_OFFSETS = dict(
    zip(("x", "xx", "xxx"), (r"[+-]\d\d(?:\d\d)?", r"[+-]\d{4}", r"[+-]\d\d:\d\d"), strict=True)
)
_OFFSETS |= {letters.upper(): f"Z|{shape}" for letters, shape in _OFFSETS.items()}
_OFFSETS |= dict.fromkeys(("Z", "ZZ", "ZZZ"), r"[+-]\d{4}")
_FIXED = re.compile("yy|DDD|MM|LL|dd|HH|hh|KK|kk|mm|ss")
_COUNTED = re.compile("y|y{3,6}|M|L|d|H|h|K|k|m|s|D|DD")
"""Numbers with a given count of digits, or with any."""


@lru_cache(maxsize=256)
def _reader(pattern: str) -> tuple[Pattern, tuple[str, ...]]:
    """What a text must look like, and which letters its groups stand for. Optional sections make
    it backtrack, so its time is limited as that of any pattern."""
    found, fields, is_counted = list[str](), list[str](), False
    for kind, part in _parts(pattern):
        if is_counted and not (kind == "letters" and _FIXED.fullmatch(part)):
            found.append(r"(?!\d)")  # a number takes all digits but those of numbers behind it
            is_counted = False
        if kind == "letters":
            found.append(f"({_readable(part)})")
            fields.append(part)
            is_counted |= _COUNTED.fullmatch(part) is not None
        else:
            found.append({"[": "(?:", "]": ")?"}.get(kind) or re.escape(part))
    closing = ")?" * (found.count("(?:") - found.count(")?"))
    flags = regex.ASCII | regex.IGNORECASE | regex.DOTALL
    text = "".join(found) + closing
    if not pattern_size.fits(text):
        raise _too_large(pattern)
    whole = compile_backtracking(text, flags)
    return Pattern(pattern, whole), tuple(fields)


def _readable(letters: str) -> str:
    letter, width = letters[0], len(letters)
    match letter:
        case "y" if width <= 6:
            return rf"\d{{{width}}}" if width in (2, 4, 5, 6) else rf"\d{{{width},19}}"
        case "M" | "L" if width in (3, 4):
            return "|".join(name if width == 4 else name[:3] for name in _MONTHS)
        case "S" if width <= 9:
            return rf"\d{{1,{width}}}"
        case "a" if width == 1:
            return "AM|PM"
        case "G" if width <= 4:
            return _IN_UTC[letters]
        case "D" if width in (2, 3):
            return rf"\d{{{width},3}}"
        case _ if letter in "MLdDHhKkms" and width <= 2:
            return r"\d{2}" if width == 2 else r"\d{1,19}"
        case _ if letters in _OFFSETS:
            return _OFFSETS[letters]
    raise _refusal(letters)


def read(text: str, pattern: str) -> datetime.datetime | None:
    """The moment that a text is by a pattern; None if it is none.

    >>> read("5 jan 2020", "d MMM yyyy")
    datetime.datetime(2020, 1, 5, 0, 0, tzinfo=datetime.timezone.utc)
    """
    reader, letters = _reader(pattern)
    match = reader.fullmatch(text)
    if match is None:
        return None
    values: dict[str, int] = {}
    try:
        for number, each in enumerate(letters, 1):
            found = match[number]
            if found is not None:
                field, value = _value(each, found)
                if values.setdefault(field, value) != value:
                    return None
        return _moment(values)
    except (ValueError, OverflowError):
        return None


def _value(letters: str, text: str) -> tuple[str, int]:
    """A field with its number; half a day, in which `a` is counted, is one, too."""
    letter = letters[0].replace("L", "M")
    if letter == "M" and len(letters) > 2:
        return "M", [name[:3].lower() for name in _MONTHS].index(text[:3].lower()) + 1
    if letter == "S":
        return "S", int(text.ljust(6, "0")[:6])
    if letter in "aG":
        return letter, int(text.upper() == "PM")
    if letters in _OFFSETS:
        return "X", _offset(text)
    if letter == "y" and len(letters) == 2:
        return "y", 2000 + int(text)
    return letter, int(text)


def _offset(text: str) -> int:
    """In minutes, of a zone."""
    digits = text.lstrip("+-").replace(":", "")
    if digits.upper() == "Z":
        return 0
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    away = hours * 60 + minutes
    if minutes > 59 or away > 18 * 60:
        raise ValueError(text)
    return -away if text.startswith("-") else away


def _moment(values: dict[str, int]) -> datetime.datetime:
    for field, most in _MOST.items():
        if not (field in _FROM_ONE) <= values.get(field, 1) <= most:
            raise ValueError(field)
    date = datetime.date(values.get("y", 1970), values.get("M", 1), values.get("d", 1))
    if "D" in values and "y" in values:
        counted = datetime.date(date.year, 1, 1) + datetime.timedelta(days=values["D"] - 1)
        apart = [name for name in ("M", "d") if name in values]
        if counted.year != date.year or any(
            getattr(counted, {"M": "month", "d": "day"}[name]) != values[name] for name in apart
        ):
            raise ValueError("D")
        date = counted
    time = datetime.time(
        _hour(values),
        values.get("m", 0),
        values.get("s", 0),
        values.get("S", 0),
        datetime.UTC,
    )
    moved = datetime.timedelta(minutes=values.get("X", 0))
    return datetime.datetime.combine(date, time) - moved


def _hour(values: dict[str, int]) -> int:
    """Of the day; without a word of AM or PM it is in the morning."""
    half = {values[name] % 12 for name in ("h", "K") if name in values}
    whole = {values[name] % 24 for name in ("H", "k") if name in values}
    halves = {values["a"]} if "a" in values else set()
    if whole:
        half |= {each % 12 for each in whole}
        halves |= {each // 12 for each in whole}
    if max(map(len, (half, whole, halves))) > 1:
        raise ValueError("H")
    return min(half, default=0) + 12 * min(halves, default=0)
