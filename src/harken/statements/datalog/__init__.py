"""Datalog's statements: relations, facts, queries, fact files, scripts."""
