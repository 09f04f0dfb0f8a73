"""Datalog, a subset of Soufflé's dialect: text to syntax to clauses."""
