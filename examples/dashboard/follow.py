"""The dashboard in a terminal: what changes in it while visits come in.

harken apply examples/dashboard --db visits.db
python examples/dashboard/follow.py visits.db
"""

import datetime
import sys

import harken

with harken.connect(sys.argv[1]) as db, db.monitor("visits_per_page") as changes:
    for page in ("/shop", "/news"):
        now = datetime.datetime(2026, 5, 1, 11, tzinfo=datetime.UTC)
        db.sql("INSERT INTO visit VALUES (?, ?, ?)", [page, 30, now])
        for change in changes.changes():
            print("+", change.plus, "-", change.minus)
