"""Limits between fetching rows, asking Spark, and postponing work."""

SMALL = 20_000
"""A lake relation of at most this many rows is fetched whole at its first use."""
MOST_ROWS = 200_000
"""A lake relation of more rows is never fetched whole: Spark answers a statement that needs all
of it."""
MOST_KEYS = 20_000
"""Spark answers a statement that needs the rows of more keys than this."""
MOST_EVALUATED = 1_000_000
"""The most rows of a recursive relation evaluated by Spark that are stored here."""
MOST_HELD = 100_000
"""The most rows of an incoming change that are held here."""
CACHE_ROWS = 2_000_000
"""More fetched rows than this are released at the end of the transaction."""
SEEK = 2_000
"""Looking up some keys takes about as long as fetching this many rows."""
LAZY_REWRITE = 1_000_000
"""A commit that would rewrite more rows than this for few changed ones is postponed."""
LAZY_PART = 0.01
""""Few" is less than this fraction of the rows."""
COMPACT_EVERY = 32
"""A table's small files are merged after this many commits."""
