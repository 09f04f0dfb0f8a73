"""What the operator hears of detached actions: that one fails, is given up, or works again.

The setting `operator_address` says where: `email ops@example.org`, `file errors.jsonl`, any channel
and address. Without it nothing is told, and the record of the action has the error.

Law: news is written in the transaction that records what it is about.
"""

from __future__ import annotations

from harken.database.messages import Message, Messages, Recipient
from harken.database.runtime import Runtime
from harken.errors import HarkenError


def operator_recipient(runtime: Runtime) -> Recipient | None:
    """Where messages for the operator go."""
    channel, _, address = str(runtime.settings["operator_address"]).strip().partition(" ")
    return Recipient(channel.lower(), address.strip()) if channel else None


def tell_failure(
    runtime: Runtime, number: int, rule: str, attempts: int, error: HarkenError
) -> None:
    """In the transaction that notes a failed attempt: told at the first one and at the last."""
    most = int(runtime.settings["notification_attempts"])
    if attempts not in (1, most):
        return
    said = f"The detached action {number} of rule {rule} failed: [{error.code}] {error.message}"
    more = "It is tried again by itself."
    if attempts >= most:
        more = f"After {attempts} attempts it is not tried again by itself."
    _tell(runtime, "operator_error", rule, f"{said}\n{more}\n{_what_to_do(number)}")


def tell_recovery(runtime: Runtime, number: int, rule: str) -> None:
    """In the transaction that carries out an action which has failed before."""
    said = f"The detached action {number} of rule {rule}, which had failed, is done."
    _tell(runtime, "recovered", rule, said)


def _what_to_do(number: int) -> str:
    return (
        f"Fix the cause, then `harken actions retry {number}`, or discard it: "
        f"`harken actions discard {number}`."
    )


def _tell(runtime: Runtime, kind: str, rule: str, text: str) -> None:
    to = operator_recipient(runtime)
    if to is None:
        return
    now = runtime.engine.connection.now()
    about = f"rule {rule}"
    Messages(runtime).write(Message(about, 0, kind, now, "operator", to, {"text": text}))
