"""Counting works in a process with a thread that was interrupted and never returns to Python."""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress

import harken
from tests.harness.counting import counted


def test_work_is_counted_beside_a_thread_that_hangs() -> None:
    lock = threading.Lock()

    def hang() -> None:
        with suppress(SystemExit):
            lock.acquire()

    with lock:
        hanging = threading.Thread(target=hang)
        hanging.start()
        identity = ctypes.c_ulong(hanging.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(SystemExit))
        with harken.connect() as db:
            assert counted(db, lambda: db.sql("SELECT 1 AS a")).lines > 0
    hanging.join()
