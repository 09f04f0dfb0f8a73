"""Active foreign functions: what was last seen is stored, and its changes trigger what depends."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken import Database, HarkenError

START = datetime.datetime(2026, 3, 2, 7, 0, tzinfo=datetime.UTC)


class Greenhouse:
    def __init__(self) -> None:
        self.now = START
        self.db: Database = harken.connect(":memory:", clock=lambda: self.now)
        self.db.amosql("""
            create type room properties (name charstring, most number);
            create function told() -> bag of charstring;
            create function temperature(room) -> number as foreign;
            create function warm(room r) -> boolean as select true where temperature(r) > most(r);
            create room(name, most) instances :a("a", 20), :b("b", 25);
            commit;
        """)
        self.a, self.b = (self.db.variables[name] for name in "ab")
        self.values: dict[Any, float | None] = {self.a: 10.0, self.b: 10.0}

    def read(self, room: Any) -> float | None:
        return self.values.get(room)

    def watch(self) -> None:
        self.db.amosql("""
            create rule warms() as for each room r when warm(r) do add told() = name(r);
            create rule jumps() as for each room r when temperature(r) > old(temperature(r)) + 10
                do add told() = "jump of " || name(r);
            activate warms(); activate jumps(); commit;
        """)

    def told(self) -> list[str]:
        rows = [str(row[0]) for row in self.db.amosql("told();").rows]
        self.db.amosql("".join(f"remove told() = '{row}';" for row in rows) + "commit;")
        return sorted(rows)


@pytest.fixture
def house() -> Iterator[Greenhouse]:
    made = Greenhouse()
    with made.db:
        yield made


def test_a_reported_change_triggers_rules(house: Greenhouse) -> None:
    sensor = house.db.foreign("temperature", house.read, active=True)
    assert sensor is not None
    house.watch()
    sensor.changed(house.a, 15.0)
    assert house.told() == []
    sensor.changed((house.a,), 21.0)
    assert house.told() == ["a"]
    sensor.changed(house.a, 22.0)
    assert house.told() == []
    sensor.changed(house.a, 40.0)
    assert house.told() == ["jump of a"]
    sensor.changed(house.a, None)
    assert house.db.amosql("temperature(:a);").rows == []
    sensor.changed(house.a, 50.0)
    assert house.told() == ["a"]


def test_a_change_is_part_of_the_open_transaction(house: Greenhouse) -> None:
    sensor = house.db.foreign("temperature", house.read, active=True)
    assert sensor is not None
    house.watch()
    sensor.changed(house.a, 15.0)
    house.db.amosql("set most(:a) = 30;")
    sensor.changed(house.a, 25.0)
    house.db.amosql("commit;")
    assert house.told() == []
    with house.db.transaction():
        sensor.changed(house.a, 50.0)
        sensor.changed(house.a, 26.0)
    assert house.told() == []
    assert house.db.function("temperature")[house.a] == 26.0


def test_a_polled_sensor_reports_what_has_changed(house: Greenhouse) -> None:
    calls: list[Any] = []

    def read(room: Any) -> float | None:
        calls.append(room)
        return house.values.get(room)

    sensor = house.db.foreign("temperature", read, active=True, every=datetime.timedelta(minutes=5))
    assert sensor is not None
    house.watch()
    assert house.db.function("temperature")[house.b] == 10.0
    assert house.db.next_due() == START + datetime.timedelta(minutes=5)
    house.values[house.b] = 26.0
    house.now += datetime.timedelta(minutes=4)
    house.db.run_due()
    assert house.told() == []
    house.now += datetime.timedelta(minutes=1)
    house.db.run_due()
    assert house.told() == ["b", "jump of b"]
    assert len(calls) == 4
    house.db.amosql('create room(name, most) instances :c("c", 1); commit;')
    house.values[house.db.variables["c"]] = 5.0
    assert sensor.poll() == 1
    assert house.told() == ["c"]
    assert sensor.poll() == 0


def test_a_sensor_that_fails_keeps_what_it_saw(house: Greenhouse) -> None:
    def read(room: Any) -> float | None:
        if house.values[room] == 99.0:
            raise OSError("no answer")
        return house.values[room]

    sensor = house.db.foreign("temperature", read, active=True)
    assert sensor is not None
    sensor.poll()
    house.values |= {house.a: 99.0, house.b: 11.0}
    with pytest.raises(HarkenError, match="no answer"):
        sensor.poll()
    assert dict(house.db.function("temperature").items()) == {house.a: 10.0, house.b: 11.0}


def test_annotations_declare_a_sensor(house: Greenhouse) -> None:
    def level(tank: int) -> float:
        return 1.5 * tank

    sensor = house.db.foreign("level", level, active=True)
    assert sensor is not None
    sensor.changed(3, 0.5)
    sensor.changed(4, 6.0)
    assert sensor.poll() == 1
    assert dict(house.db.function("level").items()) == {3: 4.5, 4: 6.0}


def test_what_cannot_be_a_sensor_is_refused(house: Greenhouse) -> None:
    with pytest.raises(HarkenError, match="derived"):
        house.db.foreign("warm", house.read, active=True)
    with pytest.raises(HarkenError, match="declare it"):
        house.db.foreign("unknown", lambda x: x, active=True)
    with pytest.raises(HarkenError, match="interval"):
        house.db.foreign("temperature", house.read, active=True, every=5)  # type: ignore[arg-type]
    with pytest.raises(HarkenError, match="active=True"):
        house.db.foreign("temperature", house.read, every=datetime.timedelta(minutes=1))
