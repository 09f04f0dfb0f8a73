"""Propagation: which changes of stored relations reach which watched views, and in what order."""
