"""NOTIFY LOG: a line in the log of the process."""

from __future__ import annotations

import logging

import pytest

from harken.database.messages import Recipient
from harken.errors import ValueFault
from harken.notify.channels.log_lines import LogLines
from tests.notify.channels.sample_messages import around, message


def test_a_message_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harken.notify")
    LogLines().send(message("log", "stock"), around())
    (record,) = caplog.records
    assert record.name == "harken.notify.stock"
    assert "low: 1 new: New: item: pen, left: 2" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueFault, match="cannot be the name of a log"):
        LogLines().check(Recipient("log", "a\nb"), around())
