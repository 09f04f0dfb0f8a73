"""The resident engine: SQLite through apsw, in memory or in one file."""
