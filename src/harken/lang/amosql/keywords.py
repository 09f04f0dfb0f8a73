"""The keywords of AMOSQL, as its grammar has them."""

from __future__ import annotations

import re
from importlib.resources import files

_GRAMMAR = files("harken.lang.amosql").joinpath("grammar.lark").read_text("utf-8")

KEYWORDS = tuple(sorted(set(re.findall(r"/(\w+)\(\?!\\w\)/i", _GRAMMAR))))
