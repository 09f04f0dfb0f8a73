"""Constraints of SQL tables: a view that must stay empty."""
