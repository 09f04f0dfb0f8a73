"""Up to where things are done here, and from where on they are Spark's or may wait."""

SMALL = 20_000
"""A relation of so many rows is brought as a whole when it is first asked for."""
MOST_ROWS = 200_000
"""A larger one is not: a statement that needs all of it is Spark's."""
MOST_KEYS = 20_000
"""A statement that needs the rows of more keys than these is Spark's."""
MOST_EVALUATED = 1_000_000
"""Of a recursive relation that Spark has evaluated, so many rows come here to be stored."""
MOST_HELD = 100_000
"""A change that is taken in is held here up to so many rows."""
CACHE_ROWS = 2_000_000
"""With more rows at hand than these, they are let go when a transaction ends."""
SEEK = 2_000
"""To look for the rows of some keys takes about as long as to bring so many rows."""
LAZY_REWRITE = 1_000_000
"""A commit that would rewrite more rows than these, for few changed ones, waits for others."""
LAZY_PART = 0.01
"""Few is less than this part of the rows."""
COMPACT_EVERY = 32
"""After so many commits to a table, its small files are merged."""
