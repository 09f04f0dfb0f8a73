"""The delivery of messages as due work: a message is due at once, or when it is tried again."""

from __future__ import annotations

import datetime
import logging

from harken.database.delivery_log import DeliveryLog
from harken.database.due_work import MESSAGES
from harken.database.messages import Messages
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError
from harken.notify.channel_modules import import_channels
from harken.notify.channel_registry import surroundings_of
from harken.notify.delivery_run import Outcome, deliver_due

logger = logging.getLogger("harken.notify")


class DueMessages:
    name = MESSAGES

    def __init__(self, runtime: Runtime, transactions: Transactions) -> None:
        self._runtime, self._transactions = runtime, transactions
        self._messages, self._log = Messages(runtime), DeliveryLog(runtime)

    def next_due(self) -> datetime.datetime | None:
        return self._messages.next_due(float(self._runtime.settings["notification_lease"]))

    def run(self, now: datetime.datetime) -> list[Outcome]:
        try:
            import_channels(self._runtime.settings)
        except HarkenError as error:  # the messages of other channels must not wait for it
            logger.warning("%s", error.message)
        around = surroundings_of(self._runtime)
        return deliver_due(self._messages, self._transactions, around, self._log)
