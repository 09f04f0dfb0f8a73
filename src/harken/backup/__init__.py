"""Backups: one file that holds a database, written while it is used, and checked when restored."""
