"""Which database an object belongs to.

Law: all sessions on one database have the same home, and no two databases do.
"""

from __future__ import annotations

import os
import sys
from itertools import count

from harken.engines.protocol import Connection

_memories = count(1)


def home_of(connection: Connection) -> str:
    if connection.in_memory:
        return sys.intern(f"memory {next(_memories)}")
    return sys.intern(os.path.realpath(connection.path))
