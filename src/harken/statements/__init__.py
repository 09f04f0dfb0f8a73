"""What a statement of each language does to a database."""
