"""CREATE, DROP and SHOW TEMPLATE, and RESEND of messages."""

from __future__ import annotations

from harken.database.messages import DEAD, Messages
from harken.database.runtime import Runtime
from harken.lang.sql.template_statements import MessageWords
from harken.notify.template_records import TemplateRecords
from harken.notify.templates import Template
from harken.values.types import TEXT


def change_messages(runtime: Runtime, words: MessageWords) -> None:
    """In a transaction."""
    records = TemplateRecords(runtime)
    match words.verb:
        case "create":
            made = Template(words.name, fields=words.fields, **words.parts)
            records.save(made, replace=words.replace)
        case "drop":
            records.drop(words.name, if_exists=words.if_exists)
        case "resend":
            messages = Messages(runtime)
            dead = [each.number for each in messages.listed(DEAD)]
            for number in words.numbers or dead:
                messages.resend(number)


def show_templates(runtime: Runtime) -> None:
    rows = [
        (each.name, ", ".join(f"{name} {type_}" for name, type_ in each.fields.items()))
        for each in TemplateRecords(runtime).all()
    ]
    runtime.emit("rows", ("template", "fields"), rows, (TEXT, TEXT))
