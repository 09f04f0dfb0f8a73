"""The resources of the API besides views and their changes: one module for each group."""
