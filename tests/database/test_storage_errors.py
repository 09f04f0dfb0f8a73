"""Files that are not what they should be, and disks that do not do what they should."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import harken
from harken import Database, HarkenError, StorageError
from harken.engines.sqlite.opened_files import APPLICATION_ID, FORMAT
from tests.harness import consistency

Connect = Callable[..., Database]

SHOP = """
create type item properties (name charstring, quantity integer);
create function low(item i) -> boolean as select true where quantity(i) < 10;
create item(name, quantity) instances :toy("toy", 5), :book("book", 50);
commit;
"""


def make_shop(path: str, items: int = 0) -> None:
    with harken.connect(path) as db:
        db.amosql(SHOP)
        db.load("item", ((f"item {i}", 100 + i) for i in range(items)), ["name", "quantity"])


def items(db: Database) -> int:
    ((count,),) = db.amosql("select count(select i for each item i);").rows
    return int(count)


def error_of(action: Callable[[], Any]) -> StorageError:
    with pytest.raises(StorageError) as caught:
        action()
    return caught.value


def open_error(path: object, **options: Any) -> StorageError:
    return error_of(lambda: harken.connect(path, **options))  # type: ignore[arg-type]


# --- files that are not databases ----------------------------------------------------------


def sqlite_file(path: Path, *statements: str) -> bytes:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        random.Random(1).randbytes(8192),
        b"name,quantity\ntoy,5\n" * 200,
        b"x",
        b"SQLite format 3\0",
        b"SQLite format 3\0" + random.Random(2).randbytes(8192),
        bytes(4096),
    ],
    ids=["random", "text", "one byte", "start of a header", "random after a header", "zeros"],
)
def test_a_file_that_is_not_a_database_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for read_only in (False, True):
        error = open_error(str(path), read_only=read_only)
        assert error.code == "not-a-database"
        assert error.hint
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE songs (title TEXT)", "INSERT INTO songs VALUES ('So What')"],
        ["PRAGMA application_id = 77"],
        ["PRAGMA application_id = 77", "CREATE TABLE songs (title TEXT)"],
        ["PRAGMA user_version = 5"],
        [f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {FORMAT}"],
    ],
    ids=["tables", "marked", "marked tables", "versioned", "marked as ours but empty"],
)
def test_the_database_of_another_application_is_refused_untouched(
    tmp_path: Path, statements: list[str]
) -> None:
    path = tmp_path / "songs.db"
    content = sqlite_file(path, *statements)
    error = open_error(str(path))
    assert error.code == "not-a-database"
    assert "Harken" in error.message
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["songs.db"]


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    make_shop(str(path))
    with harken.connect(str(path)) as db:
        assert items(db) == 2


def test_an_empty_file_cannot_be_only_read(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert open_error(str(path), read_only=True).code == "not-a-database"
    assert path.read_bytes() == b""


def test_a_newer_format_is_refused_untouched(path: str) -> None:
    make_shop(path)
    content = sqlite_file(Path(path), f"PRAGMA user_version = {FORMAT + 1}")
    for read_only in (False, True):
        error = open_error(path, read_only=read_only)
        assert error.code == "newer-format"
        assert str(FORMAT + 1) in error.message
        assert error.hint == "upgrade Harken"
    assert Path(path).read_bytes() == content


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.7, 0.95])
def test_a_truncated_database_is_refused(path: str, share: float) -> None:
    make_shop(path, items=2000)
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: int(len(content) * share)])
    error = open_error(path)
    assert error.code == "not-a-database"
    assert "damaged" in error.message
    assert error.hint


# --- damage --------------------------------------------------------------------------------


def page_of(path: str, table: str) -> tuple[int, int]:
    """Where the first page of a table lies, and the size of a page."""
    connection = apsw.Connection(path)
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    size = connection.pragma("page_size")
    connection.close()
    return (root - 1) * size, size


def overwrite(path: str, offset: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_damaged_page_gives_an_error_where_it_is_read_and_nowhere_else(path: str) -> None:
    make_shop(path)
    offset, size = page_of(path, "quantity(item)")
    overwrite(path, offset, b"\xff" * size)
    with harken.connect(path) as db:
        assert sorted(db.amosql("select name(i) for each item i;").rows) == [("book",), ("toy",)]
        for attempt in (
            lambda: db.amosql("select quantity(i) for each item i;"),
            lambda: db.function("quantity").get(db.amosql("select i for each item i;").rows[0][0]),
            lambda: db.amosql("for each item i do set quantity(i) = 1;"),
            lambda: db.load("item", [(1,)], ["quantity"]),
        ):
            error = error_of(attempt)
            assert error.code == "not-a-database"
            assert "damaged" in error.message
            assert error.hint == "restore it from a copy"
            assert not db.in_transaction
        db.amosql('for each item i where name(i) = "toy" do set name(i) = "doll"; commit;')
        assert sorted(db.amosql("select name(i) for each item i;").rows) == [("book",), ("doll",)]


def use(path: str) -> None:
    """Touch as much of a database as a user would."""
    with harken.connect(path, timeout=0) as db:
        db.amosql("select name(i), quantity(i) for each item i;")
        db.amosql("select name(i) for each item i where low(i);")
        db.amosql('create item(name, quantity) instances :x("x", 1); delete :x; commit;')
        db.amosql("create type other; create function f(item) -> integer; commit;")


def test_whatever_page_is_damaged_the_error_is_ours(tmp_path: Path) -> None:
    original = tmp_path / "original.db"
    make_shop(str(original))
    size = 4096
    met: Counter[str] = Counter()
    for page in range(original.stat().st_size // size):
        path = str(shutil.copy(original, tmp_path / "damaged.db"))
        overwrite(path, page * size, random.Random(page).randbytes(size))
        try:
            use(path)
        except StorageError as error:
            met[error.code] += 1
    assert met["not-a-database"] > 10
    assert set(met) <= {"not-a-database", "disk-error", "storage"}


@pytest.mark.parametrize(
    "damage",
    [
        'DELETE FROM "returns_bag(function)"',
        "DELETE FROM \"name(type)\" WHERE c1 = 'item'",
        'DELETE FROM "results(function)"',
        "UPDATE \"kind(function)\" SET c1 = 'magic'",
        "UPDATE \"definition(function)\" SET c1 = 'create nonsense'",
        "DELETE FROM harken_meta",
        'DROP TABLE "supertypes(type)"',
        'DROP TABLE "quantity(item)"',
        'DROP TABLE "extent item"',
    ],
)
def test_a_catalog_that_contradicts_itself_gives_an_error_of_ours(path: str, damage: str) -> None:
    make_shop(path)
    connection = apsw.Connection(path)
    connection.pragma("foreign_keys", False)
    connection.execute(damage)
    connection.close()
    with pytest.raises(HarkenError):
        use(path)


def check_flipped_bytes(directory: Path, seeds: range) -> None:
    original = directory / "original.db"
    make_shop(str(original))
    size = original.stat().st_size
    for seed in seeds:
        chance = random.Random(seed)
        path = str(shutil.copy(original, directory / f"{seed}.db"))
        for _ in range(chance.choice([1, 5, 50])):
            overwrite(path, chance.randrange(100, size), chance.randbytes(1))
        with suppress(HarkenError):
            use(path)
        os.unlink(path)


def test_wherever_bytes_are_flipped_the_error_is_ours(tmp_path: Path) -> None:
    check_flipped_bytes(tmp_path, range(80))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_wherever_many_bytes_are_flipped_the_error_is_ours(tmp_path: Path) -> None:
    check_flipped_bytes(tmp_path, range(80, 5000))


# --- paths ---------------------------------------------------------------------------------


def test_a_directory_is_not_a_database(tmp_path: Path) -> None:
    error = open_error(str(tmp_path))
    assert error.code == "cannot-open"
    assert "is a directory" in error.message
    assert error.hint


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    error = open_error(str(tmp_path / "nowhere" / "shop.db"))
    assert error.code == "cannot-open"
    assert str(tmp_path / "nowhere") in error.message
    assert error.hint
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_the_place_of_a_directory(path: str) -> None:
    make_shop(path)
    assert open_error(f"{path}/shop.db").code == "cannot-open"


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    assert open_error(f"{tmp_path}/{name}").code == "cannot-open"


def test_reading_only_does_not_create(path: str) -> None:
    error = open_error(path, read_only=True)
    assert error.code == "cannot-open"
    assert path in error.message
    assert not os.path.exists(path)


def test_a_path_may_be_an_object_and_hold_any_letters(tmp_path: Path) -> None:
    path = tmp_path / "lager & förråd #1 ?mode=memory%20.db"
    with harken.connect(path) as db:  # type: ignore[arg-type]
        db.amosql(SHOP)
    assert path.exists()


# --- reading only --------------------------------------------------------------------------


def test_a_database_that_is_only_read_refuses_every_change(path: str) -> None:
    make_shop(path)
    with harken.connect(path, read_only=True) as db:
        ((toy,),) = db.amosql('select i for each item i where name(i) = "toy";').rows
        quantity = db.function("quantity")
        for attempt in (
            lambda: db.amosql("create type other;"),
            lambda: db.amosql("create item instances :x;"),
            lambda: db.amosql("for each item i do set quantity(i) = 0;"),
            lambda: db.amosql("for each item i do delete i;"),
            lambda: db.amosql("delete function low;"),
            lambda: quantity.__setitem__(toy, 6),
            lambda: quantity.__delitem__(toy),
            lambda: db.load("item", [("x",)], ["name"]),
        ):
            error = error_of(attempt)
            assert error.code == "read-only"
            assert error.hint
            assert not db.in_transaction
        assert "x" not in db.variables
        assert quantity[toy] == 5
        with db.transaction():
            assert db.amosql("select name(i) for each item i where low(i);").rows == [("toy",)]
        with pytest.raises(StorageError), db.transaction():
            quantity[toy] = 6
        db.amosql("commit; rollback;")


def test_recursion_and_aggregates_need_no_writing(path: str) -> None:
    make_shop(path)
    with harken.connect(path) as db:
        db.amosql("""
            create function next(item) -> item;
            create function all_next(item i) -> bag of item as select tclose(#'next', i);
            for each item a, item b where low(a) and not low(b) do set next(a) = b;
        """)
    with harken.connect(path, read_only=True) as db:
        found = db.amosql("select name(a), name(b) for each item a, item b where b in all_next(a);")
        assert ("toy", "book") in found.rows
        assert db.amosql("select sum(select quantity(i) for each item i);").rows == [(55,)]


@contextmanager
def as_nobody() -> Iterator[None]:
    """The system's permissions do not count for root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared_directory() -> Iterator[Path]:
    """Like tmp_path, but other users may look into it."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_file_that_may_not_be_written_can_be_read_and_not_changed(shared_directory: Path) -> None:
    path = shared_directory / "shop.db"
    make_shop(str(path))
    path.chmod(0o444)
    shared_directory.chmod(0o777)
    with as_nobody():
        with harken.connect(str(path), read_only=True) as db:
            assert items(db) == 2
        error = error_of(lambda: use(str(path)))
        assert error.code == "read-only"
        assert error.hint


def test_a_file_that_may_not_be_read_cannot_be_opened(shared_directory: Path) -> None:
    path = shared_directory / "shop.db"
    make_shop(str(path))
    path.chmod(0o000)
    with as_nobody():
        for read_only in (False, True):
            assert open_error(str(path), read_only=read_only).code == "cannot-open"


def test_a_directory_that_may_not_be_written_cannot_hold_a_new_database(
    shared_directory: Path,
) -> None:
    with as_nobody():
        error = open_error(str(shared_directory / "shop.db"))
    assert error.code == "cannot-open"
    assert error.hint


def test_a_database_in_a_directory_that_may_not_be_written(shared_directory: Path) -> None:
    """SQLite puts its log there, even to read: the error says what is in the way."""
    path = shared_directory / "shop.db"
    make_shop(str(path))
    with as_nobody():
        error = open_error(str(path), read_only=True)
    assert error.code in ("cannot-open", "read-only")
    assert "directory" in str(error.hint)


# --- full disks ----------------------------------------------------------------------------


class Disk:
    """A place for a database whose size a test can limit."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "shop.db")

    def fill(self, db: Database) -> None:
        raise NotImplementedError

    def empty(self, db: Database) -> None:
        raise NotImplementedError


class SmallDisk(Disk):
    """A real file system that is full because another file takes all its room."""

    def fill(self, db: Database) -> None:
        with suppress(OSError), open(f"{self.path}.ballast", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))

    def empty(self, db: Database) -> None:
        os.unlink(f"{self.path}.ballast")


class SmallDatabase(Disk):
    """SQLite itself is told to let the file grow no more."""

    def fill(self, db: Database) -> None:
        db.internals.connection.raw.pragma("max_page_count", 1)

    def empty(self, db: Database) -> None:
        db.internals.connection.raw.pragma("max_page_count", 1_000_000)


@pytest.fixture(params=[SmallDisk, SmallDatabase])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param is SmallDatabase:
        yield SmallDatabase(tmp_path)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield SmallDisk(tmp_path)
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


LOTS = [(f"item {i} " + "x" * 200, i) for i in range(20_000)]


def fail_by_load(db: Database) -> None:
    db.load("item", LOTS, ["name", "quantity"])


def fail_by_load_in_a_transaction(db: Database) -> None:
    db.amosql('create type gone; create item(name, quantity) instances :gone("gone", 1);')
    db.load("item", LOTS, ["name", "quantity"])
    db.commit()


def fail_by_text(db: Database) -> None:
    db.assign("long", "x" * 5_000_000)
    db.amosql("""
        create type gone;
        create item(name, quantity) instances :gone("gone", 1);
        set quantity(:gone) = 2;
        set name(:gone) = :long;
        commit;
    """)


def fail_by_handles(db: Database) -> None:
    name = db.function("name")
    ((toy,),) = db.amosql('select i for each item i where name(i) = "toy";').rows
    with db.transaction():
        db.amosql("create type gone; create item instances :gone;")
        name[toy] = "x" * 5_000_000


def fail_by_handles_in_an_open_transaction(db: Database) -> None:
    name = db.function("name")
    ((toy,),) = db.amosql('select i for each item i where name(i) = "toy";').rows
    db.amosql("create type gone; create item instances :gone;")
    name[toy] = "x" * 5_000_000
    db.commit()


@pytest.mark.parametrize(
    "fail",
    [
        fail_by_load,
        fail_by_load_in_a_transaction,
        fail_by_text,
        fail_by_handles,
        fail_by_handles_in_an_open_transaction,
    ],
)
def test_a_full_disk_undoes_the_transaction_and_loses_nothing(
    disk: Disk, fail: Callable[[Database], None]
) -> None:
    make_shop(disk.path, items=100)
    with harken.connect(disk.path) as db:
        disk.fill(db)
        error = error_of(lambda: fail(db))
        assert error.code == "disk-full"
        assert error.hint
        if db.in_transaction:
            db.rollback()  # only the failed step was undone

        assert items(db) == 102
        assert "gone" not in db.variables
        with pytest.raises(harken.NameFault):
            db.amosql("create gone instances :x;")
        consistency.check(db)

        disk.empty(db)
        db.amosql('create type gone; create item(name, quantity) instances :x("x", 1); commit;')
        assert items(db) == 103
        consistency.check(db)
    with harken.connect(disk.path) as db:
        assert items(db) == 103
        consistency.check(db)


def test_a_full_disk_does_not_keep_queries_from_running(disk: Disk) -> None:
    """Not even those for which an index would be made."""
    make_shop(disk.path, items=100)
    with harken.connect(disk.path) as db:
        disk.fill(db)
        found = db.amosql('select quantity(i) for each item i where name(i) = "toy";')
        assert found.rows == [(5,)]
        found = db.amosql("select name(i) for each item i where quantity(i) = 150;")
        assert found.rows == [("item 50",)]
        disk.empty(db)


def test_a_database_cannot_be_created_on_a_full_disk_but_later(disk: Disk) -> None:
    if isinstance(disk, SmallDatabase):
        pytest.skip("the limit can be set on an open database only")
    disk.fill(None)  # type: ignore[arg-type]
    error = open_error(disk.path)
    assert error.code == "disk-full"
    disk.empty(None)  # type: ignore[arg-type]
    make_shop(disk.path)
    with harken.connect(disk.path) as db:
        assert items(db) == 2
        consistency.check(db)


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fails_undoes_the_transaction(path: str) -> None:
    make_shop(path)
    with harken.connect(path) as db:
        with files_no_longer_than(500_000):
            error = error_of(lambda: db.load("item", LOTS, ["name", "quantity"]))
        assert error.code == "disk-error"
        assert error.hint
        assert not db.in_transaction
        assert items(db) == 2
        db.amosql("create item instances :x; commit;")
        assert items(db) == 3
        consistency.check(db)


def test_a_commit_that_fails_leaves_no_transaction_open(path: str) -> None:
    make_shop(path)
    with harken.connect(path) as db:
        db.amosql('create type gone; create item(name) instances :gone("x");')
        ((gone,),) = db.amosql("select i for each item i where i = :gone;").rows
        db.function("name")[gone] = "x" * 400_000
        with files_no_longer_than(200_000):
            error = error_of(db.commit)
        assert error.code in ("disk-error", "disk-full")
        assert not db.in_transaction
        assert items(db) == 2
        assert "gone" not in db.variables
        assert db.amosql('select t for each type t where name(t) = "gone";').rows == []


def test_closing_on_a_full_disk_reports_the_loss(disk: Disk) -> None:
    make_shop(disk.path)
    db = harken.connect(disk.path)
    disk.fill(db)
    db.amosql("for each item i do set quantity(i) = 0;")
    if isinstance(disk, SmallDisk):
        assert error_of(db.close).code == "disk-full"
    db.close()
    disk.empty(harken.connect())
    with harken.connect(disk.path) as db:
        consistency.check(db)
