"""The database: catalog, objects and transactions over an engine."""
