"""A signal ends a running pipeline, whatever instruction it comes between."""

import random
import signal

from harken.pipeline.step_runs import Stop

ROUNDS = 300


def test_a_signal_at_any_moment_of_the_wait_is_noticed() -> None:
    """With an Event in place of the queue, one in a few hundred blocked the handler for ever."""
    chance = random.Random(1)
    before = signal.getsignal(signal.SIGALRM)
    try:
        for _ in range(ROUNDS):
            stop = Stop()
            signal.signal(signal.SIGALRM, stop.handle)
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3))
            while not stop.requested:
                stop.wait(1e-5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
