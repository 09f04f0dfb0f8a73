"""What can be wrong with a project."""

from __future__ import annotations

from harken.errors import HarkenError


class ProjectFault(HarkenError):
    """bad-project: a file says what none can; not-owned: it would change what is another's;
    data-loss: rows would be gone; test-failed: a test does not have the rows that it expects."""

    default_code = "bad-project"
