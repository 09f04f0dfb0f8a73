"""The lake engine: relations as Delta tables, their changes in the resident file, Spark for the
work that is too large for one process."""
