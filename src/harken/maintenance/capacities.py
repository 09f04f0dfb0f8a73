"""Limits on the size of logs and stored measurements, and on what SQLite accepts.

No choice of a strategy depends on these numbers, so they are not tuning. The limit on kept state is
a setting, `kept_bytes`.
"""

LONGEST_STATEMENT = 3_000
"""SQLite needs seconds or more to prepare a statement with more literals than this."""
REMEMBERED_DECISIONS = 4
"""The log keeps this many decisions of each node. Equal ones in a row are one entry."""
MOST_STORED_NODES = 1_000
"""The file keeps measurements of this many nodes; older ones are deleted."""
MOST_STORED_CHARACTERS = 20_000
"""Measurements of one node that are longer, as JSON, are not stored."""
MOST_LAKE_GROUPS = 500_000
"""Totals over lake relations are kept for at most this many groups, since SQLite stores them."""
MOST_COMPILED = 64
"""Waves are compiled for this many sets of changed relations."""
MOST_COMPILED_NODES = 400
"""A compiled wave has at most this many nodes."""
MOST_PROGRAMS = 1_000
"""The most programs of production rules whose runs are remembered."""
