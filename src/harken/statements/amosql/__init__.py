"""Statements of AMOSQL: types, functions, rules, procedures, updates and queries."""
