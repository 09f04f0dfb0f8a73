"""Delta tables without Spark: files, versions, keys and commits."""
