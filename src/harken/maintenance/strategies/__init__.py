"""The strategies that find the change of a node: one class per file.

`registry` lists them. The chooser asks which of them apply and what each would cost, and runs one.

Law: all find the same change, the difference between the rows now and the rows before.
"""

from harken.maintenance.strategies.names import FROM_SCRATCH, Strategy

__all__ = ["FROM_SCRATCH", "Strategy"]
