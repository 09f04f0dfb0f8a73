"""The names of the languages that functions are defined in.

The catalog stores the name with each function (`Function.language`), so nobody has to guess it from
the text of a definition.
"""

from __future__ import annotations

AMOSQL, SQL, DATALOG = "amosql", "sql", "datalog"
PYTHON = "python"
"""The language of functions registered with `db.foreign`: they belong to the session and have no
text."""
