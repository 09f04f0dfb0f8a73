"""What the statements of each language do to a database."""
