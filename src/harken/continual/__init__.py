"""Continual queries: a query, what triggers it, and when it stops."""
