"""SQL: text into syntax (sqlglot's), and syntax into ObjectLog."""
