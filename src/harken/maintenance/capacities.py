"""How much of each kind there may be: sizes of logs and stored texts, and what SQLite takes.

No choice of a strategy depends on how these are set, so they are no tuning. What is kept of views
has its limit in a setting, `kept_bytes`.
"""

LONGEST_STATEMENT = 3_000
"""SQLite needs seconds or more to prepare a statement with more literals than this."""
REMEMBERED_DECISIONS = 4
"""The log keeps this many decisions of each node. Equal ones in a row are one entry."""
MOST_STORED_NODES = 1_000
"""The file keeps measurements of this many nodes; older ones are deleted."""
MOST_STORED_CHARACTERS = 20_000
"""Measurements of one node that are longer, as JSON, are not stored."""
