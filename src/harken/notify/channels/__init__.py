"""The channels, one module for each. `register_all` is what a session calls."""

from __future__ import annotations

from harken.notify.channel_registry import register
from harken.notify.channels.file_lines import FileLines


def register_all() -> None:
    register(FileLines())
