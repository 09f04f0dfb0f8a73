"""Where outside data comes from: a registry of kinds, one module a kind."""
