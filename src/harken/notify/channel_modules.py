"""The modules with channels of a user's own that the operator names, so that `harken serve` has
them, too."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from harken.errors import ValueFault


def import_channels(settings: Mapping[str, Any]) -> None:
    """Each is imported once; its `@harken.channel` registers it."""
    for module in filter(None, str(settings["channel_modules"]).split(",")):
        try:
            import_module(module.strip())
        except ImportError as error:
            raise ValueFault(
                f"the module {module.strip()} of the setting channel_modules cannot be imported: "
                f"{error}",
                code="bad-value",
                hint="the directory of the module must be in PYTHONPATH",
            ) from error
