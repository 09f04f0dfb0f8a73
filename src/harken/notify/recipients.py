"""Is a NOTIFY clause one that can work? Asked when it is written, not when it is needed."""

from __future__ import annotations

from harken.database.messages import Recipient
from harken.database.runtime import Runtime
from harken.errors import ValueFault, offered
from harken.notify.channel_modules import import_channels
from harken.notify.channel_registry import channel_named, is_built_in, surroundings_of
from harken.notify.pacing import OPTIONS, pacing_of
from harken.notify.template_records import TemplateRecords


def check_recipient(runtime: Runtime, to: Recipient) -> None:
    """Raise if nothing can ever be delivered there, or in that way."""
    pacing_of(to.options)
    template = to.options.get("template")
    if template is not None:
        if not isinstance(template, str):
            raise ValueFault(f"TEMPLATE cannot be {template}: it is a name", code="bad-value")
        TemplateRecords(runtime).check(template)
    import_channels(runtime.settings)
    channel = channel_named(to.channel)
    if is_built_in(to.channel):
        _check_options(to, (*OPTIONS, "template", *getattr(channel, "options", ())))
    channel.check(to, surroundings_of(runtime))


def _check_options(to: Recipient, known: tuple[str, ...]) -> None:
    for each in to.options:
        if each not in known:
            raise ValueFault(
                f"NOTIFY {to.channel.upper()} has no option {each.upper()}",
                code="bad-value",
                hint=offered(each, known, "options"),
            )
