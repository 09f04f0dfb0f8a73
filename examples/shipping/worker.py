"""Ships what has been paid, at least once, and never misses an order: python worker.py shipping.db.

The changes of the view are kept in the database from the first run on, also while no worker runs.
"""

import sys

import harken


def ship(item: str) -> None:
    print("shipping", item)


def main(path: str) -> None:
    with harken.connect(path) as db:
        paid = db.monitor("to_ship", durable="worker")
        for change in paid.changes():
            for _, item in change.plus:
                ship(item)
            paid.acknowledge()  # not before the work is done


if __name__ == "__main__":
    main(sys.argv[1])
