"""How long tests wait for something that is certain to happen.

A test that waits fails only if the thing never happens; how fast the machine is must not matter.
"""

PATIENCE = 300
"""Seconds. Only a test that fails waits that long; a whole test may take longer still (`timeout` in
pyproject.toml)."""
