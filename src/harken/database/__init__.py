"""The database: catalog, objects, transactions, statements and procedures over an engine."""
