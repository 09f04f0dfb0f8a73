"""The errors of projects."""

from __future__ import annotations

from harken.errors import HarkenError


class ProjectFault(HarkenError):
    """bad-project: a file is invalid; not-owned: it would change something of another project;
    data-loss: rows would be lost; test-failed: a test does not have the expected rows."""

    default_code = "bad-project"
