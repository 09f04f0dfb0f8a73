"""Guards a session against use by several threads at once.

Law: while one thread is in a method of a session, or in a `with db.transaction()` block, a call
from another thread is refused before it does anything. Using a session from different threads one
after the other is allowed.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from harken import limits
from harken.database.arguments import wrong_call
from harken.errors import IntegrityError
from harken.packages import missing_package


class SessionLock:
    """The lock of a session. The same thread may enter again, as a foreign function does."""

    def __init__(self, watch: limits.Watch) -> None:
        self._watch = watch
        self._guests = threading.local()
        self.allowed: frozenset[str] | None = None
        """The methods that may be called while the session works for a user who is no operator, as
        `Class.method`; None means all."""
        lock = threading.RLock()
        self.acquire = lock.acquire
        """With False, it says whether this thread got the lock; with `release` for the hot paths,
        where a `with` would cost as much as the work."""
        self.release = lock.release

    def __enter__(self) -> None:
        if self.acquire(blocking=False):
            return
        if limits.current() is not self._watch:
            raise other_thread()
        # Under a time limit a foreign function runs in a thread of its own, on behalf of the thread
        # that waits.
        self._guests.depth = getattr(self._guests, "depth", 0) + 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if getattr(self._guests, "depth", 0):
            self._guests.depth -= 1
        else:
            self.release()


def other_thread() -> IntegrityError:
    return IntegrityError(
        "another thread is using this session",
        code="other-thread",
        hint="open a session for each thread with harken.connect",
    )


def for_operators(name: str) -> IntegrityError:
    return IntegrityError(
        f"{name} is for operators, and the session works for somebody who is none",
        code="not-permitted",
        hint="ask an operator",
    )


class HasSessionLock(Protocol):
    @property
    def session_lock(self) -> SessionLock: ...


Self = TypeVar("Self", bound=HasSessionLock)
P = ParamSpec("P")
R = TypeVar("R")


def exclusive(
    method: Callable[Concatenate[Self, P], R],
) -> Callable[Concatenate[Self, P], R]:
    """Decorates a method that only one thread at a time may execute. If the method needs a package
    that is not installed, or does not have the arguments of the call, its error says so."""

    @functools.wraps(method)
    def alone(self: Self, /, *given: P.args, **named: P.kwargs) -> R:
        lock = self.session_lock
        with lock:
            if lock.allowed is not None and method.__qualname__ not in lock.allowed:
                raise for_operators(method.__name__)
            try:
                return method(self, *given, **named)
            except ModuleNotFoundError as error:
                missing = missing_package(error)
                if missing is None:
                    raise
                raise missing from error
            except TypeError as error:
                wrong = wrong_call(method, (self, *given), named)
                if wrong is None:
                    raise
                raise wrong from error

    return alone
