"""PostgreSQL as a source: its log of changes, triggers, or reading again."""
