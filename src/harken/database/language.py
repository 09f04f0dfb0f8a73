"""The languages that functions are defined in, by name.

The catalog stores the name with each function (`Function.language`), so nobody has to guess it
from the text of a definition.
"""

from __future__ import annotations

AMOSQL, SQL, DATALOG = "amosql", "sql", "datalog"
PYTHON = "python"
"""What `db.foreign` registers: a function of this session, which has no text."""
