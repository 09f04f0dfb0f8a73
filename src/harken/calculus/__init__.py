"""The difference calculus: pure functions from ObjectLog to ObjectLog that compute changes.

Nothing here knows of rules, of AMOSQL or of an engine. A Δ-set is a relation with one more column,
the weight: +1 for a row that was added, −1 for one that was removed, and for bags how often.
"""
