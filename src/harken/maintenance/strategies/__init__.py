"""The strategies by which the change of a node is found: one class a file.

`registry` lists them; the chooser asks them which apply, what each would take, and has one run.

Law: all find the same change, the difference between the rows now and the rows before.
"""

from harken.maintenance.strategies.names import FROM_SCRATCH, Strategy

__all__ = ["FROM_SCRATCH", "Strategy"]
