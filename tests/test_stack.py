"""Room on the stack is there for every thread that needs it, and given back by the last."""

import sys
import threading

from harken.stack import room_for
from tests.harness.patience import PATIENCE


def test_one_thread_does_not_take_the_room_of_another() -> None:
    before = sys.getrecursionlimit()
    first_is_in, first_may_go = threading.Event(), threading.Event()

    def first() -> None:
        with room_for(before + 500):
            first_is_in.set()
            first_may_go.wait(PATIENCE)

    thread = threading.Thread(target=first)
    thread.start()
    first_is_in.wait(PATIENCE)
    with room_for(before + 1000):
        first_may_go.set()
        thread.join(PATIENCE)
        assert sys.getrecursionlimit() == before + 1000
    assert sys.getrecursionlimit() == before


def test_room_that_is_there_stays() -> None:
    before = sys.getrecursionlimit()
    with room_for(10), room_for(before + 10):
        assert sys.getrecursionlimit() == before + 10
    assert sys.getrecursionlimit() == before
