"""SQLAlchemy over Harken: tables, core queries, reflection, the ORM, and what is refused."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import harken

DAY = datetime.date(2026, 2, 3)
MOMENT = datetime.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)

METADATA = sa.MetaData()
CITY = sa.Table(
    "city",
    METADATA,
    sa.Column("name", sa.String(50), primary_key=True),
    sa.Column("people", sa.Integer, server_default=sa.text("0")),
)
SALE = sa.Table(
    "sale",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("city", sa.ForeignKey("city.name")),
    sa.Column("order", sa.Text, nullable=False),
    sa.Column("price", sa.Numeric(8, 2)),
    sa.Column("weight", sa.Float),
    sa.Column("paid", sa.Boolean),
    sa.Column("day", sa.Date),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.UniqueConstraint("order"),
    sa.CheckConstraint("price >= 0"),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    made = filled(tmp_path)
    yield made
    made.dispose()


@pytest.fixture(scope="module")
def readable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """One for all tests that change nothing."""
    made = filled(tmp_path_factory.mktemp("readable"))
    yield made
    made.dispose()


def filled(directory: Path) -> sa.Engine:
    made = sa.create_engine(f"harken:///{directory / 'shop.db'}")
    METADATA.create_all(made)
    with made.begin() as connection:
        connection.execute(
            sa.insert(CITY), [{"name": "Oslo", "people": 7}, {"name": "Rome", "people": 28}]
        )
        connection.execute(
            sa.insert(SALE),
            [
                {
                    "id": 1,
                    "city": "Oslo",
                    "order": "a",
                    "price": decimal.Decimal("1.50"),
                    "day": DAY,
                },
                {
                    "id": 2,
                    "city": "Rome",
                    "order": "b",
                    "price": decimal.Decimal("2.50"),
                    "day": None,
                },
                {"id": 3, "city": "Rome", "order": "c", "price": None, "day": None},
            ],
        )
    return made


# --- queries -------------------------------------------------------------------------------

S = SALE.c
QUERIES = {
    "all of a row": (
        sa.select(S.id, S.price, S.day).where(S.id == 1),
        [(1, decimal.Decimal("1.50"), DAY)],
    ),
    "conditions": (
        sa.select(S.id).where(S.city.in_(["Rome", "Bonn"]), S.order.like("b%")),
        [(2,)],
    ),
    "nothing in a list": (sa.select(S.id).where(S.id.in_([])), []),
    "a null": (sa.select(S.id).where(S.price.is_(None)), [(3,)]),
    "a join": (
        sa.select(S.id, CITY.c.people).join(CITY).where(CITY.c.people > 10).order_by(S.id.desc()),
        [(3, 28), (2, 28)],
    ),
    "an outer join": (
        sa.select(CITY.c.name, S.id)
        .outerjoin_from(CITY, SALE, (S.city == CITY.c.name) & (S.id > 2))
        .order_by(CITY.c.name),
        [("Oslo", None), ("Rome", 3)],
    ),
    "groups": (
        sa.select(S.city, sa.func.count(), sa.func.sum(S.id))
        .group_by(S.city)
        .having(sa.func.count() > 1),
        [("Rome", 2, 5)],
    ),
    "a part": (sa.select(S.id).order_by(S.id).limit(1).offset(1), [(2,)]),
    "an offset alone": (sa.select(S.id).order_by(S.id).offset(2), [(3,)]),
    "a subquery": (
        sa.select(sa.func.count()).select_from(sa.select(S.city).distinct().subquery()),
        [(2,)],
    ),
    "exists": (
        sa.select(CITY.c.name).where(sa.exists().where(S.city == CITY.c.name, S.id == 1)),
        [("Oslo",)],
    ),
    "a union": (
        sa.union(sa.select(S.city), sa.select(CITY.c.name)).order_by("city"),
        [("Oslo",), ("Rome",)],
    ),
    "a common table": (
        sa.select((c := sa.select(S.id).where(S.id > 1).cte("big")).c.id).order_by(c.c.id),
        [(2,), (3,)],
    ),
    "a case": (
        sa.select(sa.case((S.id == 1, "one"), else_="more")).where(S.id < 3).order_by(S.id),
        [("one",), ("more",)],
    ),
    "a window": (
        sa.select(S.id, sa.func.row_number().over(partition_by=S.city, order_by=S.id.desc()))
        .where(S.city == "Rome")
        .order_by(S.id),
        [(2, 2), (3, 1)],
    ),
    "casts and arithmetic": (
        sa.select(sa.cast(S.id, sa.String), S.id / 2, S.id % 2, S.order + "!").where(S.id == 3),
        [("3", decimal.Decimal("1.5"), 1, "c!")],
    ),
    "literals": (
        sa.select(sa.true(), sa.false(), sa.null(), sa.literal("it's `x`")),
        [(True, False, None, "it's `x`")],
    ),
    "not distinct": (sa.select(S.id).where(S.price.is_not_distinct_from(None)), [(3,)]),
    "a pattern": (sa.select(S.id).where(S.city.regexp_match("^R")).order_by(S.id), [(2,), (3,)]),
    "text": (
        sa.text("SELECT id FROM sale WHERE id > :n ORDER BY id").bindparams(n=1),
        [(2,), (3,)],
    ),
    "parts of a date": (sa.select(sa.extract("year", S.day)).where(S.id == 1), [(2026,)]),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries(readable: sa.Engine, name: str) -> None:
    query, rows = QUERIES[name]
    with readable.connect() as connection:
        assert [tuple(row) for row in connection.execute(query)] == rows


def test_all_types_come_back(engine: sa.Engine) -> None:
    values = {
        "id": 9,
        "city": None,
        "order": "z",
        "price": decimal.Decimal("1.25"),
        "weight": 2.5,
        "paid": True,
        "day": DAY,
        "at": MOMENT,
    }
    with engine.begin() as connection:
        connection.execute(sa.insert(SALE).values(values))
        (row,) = connection.execute(sa.select(SALE).where(S.id == 9)).mappings()
    assert dict(row) == values


# --- changes -------------------------------------------------------------------------------


def test_insert_update_delete(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            sa.insert(SALE).values([{"id": 4, "order": "d"}, {"id": 5, "order": "e"}])
        )
        connection.execute(sa.insert(CITY).values(name="Bonn"))
        connection.execute(sa.update(SALE).where(S.id == 4).values(price=S.id * 2, city="Bonn"))
        connection.execute(sa.delete(SALE).where(S.id.in_([1, 5])))
        connection.execute(
            sa.insert(CITY).from_select(
                ["name", "people"], sa.select(S.order, S.id).where(S.id == 3)
            )
        )
        found = connection.execute(sa.select(S.id, S.price, S.city).order_by(S.id)).all()
        assert found[-1] == (4, decimal.Decimal(8), "Bonn")
        assert [row.id for row in found] == [2, 3, 4]
        assert connection.scalar(sa.select(CITY.c.people).where(CITY.c.name == "Bonn")) == 0
        assert connection.scalar(sa.select(CITY.c.people).where(CITY.c.name == "c")) == 3


def test_returning(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        made = connection.execute(sa.insert(CITY).values(name="Bonn").returning(CITY.c.people))
        assert made.scalar_one() == 0
        changed = connection.execute(
            sa.update(SALE).where(S.city == "Rome").values(weight=1.5).returning(S.id, S.weight)
        )
        assert sorted(changed.all()) == [(2, 1.5), (3, 1.5)]
        assert connection.execute(sa.delete(SALE).where(S.id == 1).returning(S.id)).all() == [(1,)]


def test_changes_by_another_table(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            sa.update(SALE)
            .where(S.city == CITY.c.name, CITY.c.people > 10)
            .values(weight=CITY.c.people)
        )
        connection.execute(sa.delete(SALE).where(S.city == CITY.c.name, CITY.c.people < 10))
        assert connection.execute(sa.select(S.id, S.weight).order_by(S.id)).all() == [
            (2, 28),
            (3, 28),
        ]


def test_transactions(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(sa.delete(SALE))
        connection.rollback()
        assert connection.scalar(sa.select(sa.func.count()).select_from(SALE)) == 3
        connection.execute(sa.delete(SALE).where(S.id == 1))
    with engine.connect() as connection:  # what is not committed is undone
        assert connection.scalar(sa.select(sa.func.count()).select_from(SALE)) == 3
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.delete(SALE).where(S.id == 1))
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(SALE)) == 2
        assert connection.get_isolation_level() == "SERIALIZABLE"


def test_errors_are_wrapped(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.IntegrityError, match="already has a row"):
            connection.execute(sa.insert(CITY).values(name="Oslo"))
        connection.rollback()
        with pytest.raises(sa.exc.ProgrammingError, match="there is no table"):
            connection.execute(sa.text("SELECT * FROM nope"))


# --- reflection ----------------------------------------------------------------------------


@pytest.fixture
def inspector(engine: sa.Engine) -> sa.Inspector:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE VIEW dear AS SELECT id, price FROM sale WHERE price > 2")
        connection.exec_driver_sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM sale")
    return sa.inspect(engine)


def test_what_there_is(inspector: sa.Inspector) -> None:
    assert sorted(inspector.get_table_names()) == ["city", "sale"]
    assert inspector.get_view_names() == ["dear"]
    assert inspector.get_materialized_view_names() == ["n"]
    assert inspector.get_view_definition("dear").startswith("CREATE VIEW dear")
    assert inspector.has_table("sale")
    assert inspector.has_table("dear")
    assert not inspector.has_table("nope")
    assert inspector.get_schema_names() == []
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("nope")


def test_columns_and_constraints(inspector: sa.Inspector) -> None:
    columns = {each["name"]: each for each in inspector.get_columns("sale")}
    assert list(columns) == [column.name for column in SALE.columns]
    kinds = [type(each["type"]).__name__ for each in columns.values()]
    assert kinds == ["BIGINT", "TEXT", "TEXT", "DECIMAL", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"]
    assert [name for name, each in columns.items() if not each["nullable"]] == ["id", "order"]
    assert columns["price"]["type"].scale == 2
    assert inspector.get_columns("city")[1]["default"] == "0"
    assert inspector.get_pk_constraint("sale")["constrained_columns"] == ["id"]
    assert inspector.get_pk_constraint("dear")["constrained_columns"] == []
    (key,) = inspector.get_foreign_keys("sale")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (
        ["city"],
        "city",
        ["name"],
    )
    assert [each["column_names"] for each in inspector.get_unique_constraints("sale")] == [
        ["order"]
    ]
    assert [each["sqltext"] for each in inspector.get_check_constraints("sale")] == ["price >= 0"]
    assert inspector.get_indexes("sale") == []
    assert inspector.get_table_comment("sale") == {"text": None}


def test_what_is_reflected_can_be_made_again(engine: sa.Engine) -> None:
    reflected = sa.MetaData()
    reflected.reflect(engine)
    copy = sa.create_engine("harken://")
    reflected.create_all(copy)
    again = sa.MetaData()
    again.reflect(copy)
    for name, table in reflected.tables.items():
        made = sa.schema.CreateTable(again.tables[name]).compile(copy)
        assert str(made) == str(sa.schema.CreateTable(table).compile(engine))
    reflected.drop_all(copy)
    assert sa.inspect(copy).get_table_names() == []
    copy.dispose()


# --- pandas and the ORM --------------------------------------------------------------------


def test_pandas_reads_and_writes(engine: sa.Engine) -> None:
    frame = pandas.read_sql("SELECT id, city FROM sale ORDER BY id", engine)
    assert list(frame["id"]) == [1, 2, 3]
    frame.to_sql("copied", engine, index=False)
    assert pandas.read_sql_table("copied", engine).equals(frame)


class Base(orm.DeclarativeBase):
    pass


class Person(Base):
    __tablename__ = "person"
    name: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    age: orm.Mapped[int | None]


def test_the_orm(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Person(name="Ann", age=30), Person(name="Bo", age=None)])
        session.commit()
        session.scalars(sa.select(Person).where(Person.name == "Bo")).one().age = 5
        session.delete(session.get(Person, "Ann"))
        session.commit()
        assert [(p.name, p.age) for p in session.scalars(sa.select(Person))] == [("Bo", 5)]


# --- what is not there ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (sa.Column("a", sa.Time), "time of day"),
        (sa.Column("a", sa.LargeBinary), "bytes"),
        (sa.Column("a", sa.JSON), "JSON"),
        (sa.Column("a", sa.Integer, sa.Identity()), "identity"),
        (sa.Column("a", sa.Integer, sa.Computed("1")), "computed"),
    ],
)
def test_columns_that_are_refused(
    readable: sa.Engine, column: sa.Column[object], words: str
) -> None:
    with pytest.raises(sa.exc.CompileError, match=words):
        sa.Table("refused", sa.MetaData(), column).create(readable)


def test_what_else_is_refused(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.CompileError, match="FOR UPDATE"):
            connection.execute(sa.select(SALE).with_for_update())
        with pytest.raises(NotImplementedError, match="savepoints"):
            connection.begin_nested()


def test_a_key_that_nobody_gives_is_an_error(engine: sa.Engine) -> None:
    """There is no autoincrement."""
    table = sa.Table("numbered", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    table.append_column(sa.Column("n", sa.Integer))
    with engine.connect() as connection:
        table.create(connection)
        with pytest.raises(sa.exc.IntegrityError, match="NULL"):
            connection.execute(sa.insert(table).values(n=1))


def test_a_read_only_database(engine: sa.Engine) -> None:
    readable = sa.create_engine(f"{engine.url}?read_only=true&timeout=1")
    with readable.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(SALE)) == 3
        with pytest.raises(sa.exc.OperationalError):
            connection.execute(sa.delete(SALE))
    readable.dispose()


def test_sources_are_tables_and_domains_are_views(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"id": 1}]')
    with harken.connect(str(tmp_path / "a.db")) as db:
        db.source("item", "json", path=tmp_path / "a.json", key="id")
        db.domain("goods", ["item"])
    engine = sa.create_engine(f"harken:///{tmp_path / 'a.db'}")
    inspector = sa.inspect(engine)
    assert "item" in inspector.get_table_names()
    assert inspector.get_view_names() == ["goods"]
    assert [each["name"] for each in inspector.get_columns("goods")] == ["id", "_member"]
    engine.dispose()
