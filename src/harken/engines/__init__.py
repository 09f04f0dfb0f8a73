"""Engines: ObjectLog into the SQL of an existing database, and rows back."""
