"""The channels, one module for each. `register_all` is what a session calls."""

from __future__ import annotations

from harken.notify.channel_registry import register_built_in
from harken.notify.channels.apprise_services import AppriseServices
from harken.notify.channels.command_calls import Commands
from harken.notify.channels.emails import Emails
from harken.notify.channels.file_lines import FileLines
from harken.notify.channels.log_lines import LogLines
from harken.notify.channels.webhooks import Webhooks


def register_all() -> None:
    for channel in (AppriseServices(), Commands(), FileLines(), LogLines(), Webhooks()):
        register_built_in(channel)
    register_built_in(Emails(), secret_settings=("smtp_password",))
