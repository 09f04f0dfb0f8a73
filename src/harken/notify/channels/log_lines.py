"""`NOTIFY LOG 'name'`: a line in the log of the process, under `harken.notify.name`."""

from __future__ import annotations

import logging
import re

from harken.database.messages import Recipient, StoredMessage
from harken.errors import ValueFault
from harken.notify.channel_registry import Surroundings
from harken.notify.texts import one_line

LOGGER = "harken.notify"
LONGEST_LINE = 2_000


class LogLines:
    name = "log"

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        if not re.fullmatch(r"[\w.-]{0,100}", recipient.address):
            raise ValueFault(
                f"{recipient.address!r} cannot be the name of a log",
                code="bad-value",
                hint="use letters, digits, _, - and .",
            )

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        name = message.message.recipient.address
        failed = message.message.kind in ("error", "operator_error")
        texts = around.texts(message)
        said = one_line(f"{texts.subject}: {texts.text}", LONGEST_LINE)
        logger = logging.getLogger(f"{LOGGER}.{name}" if name else LOGGER)
        logger.log(logging.ERROR if failed else logging.INFO, "%s [%s]", said, message.id)
