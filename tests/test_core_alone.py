"""Harken without its extras: the wheel in an environment of its own, with nothing else installed.

Law: all that needs no extra works there, and what needs one says which and how to install it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harken
from harken.packages import ALONE, EXTRAS

ROOT = Path(__file__).parents[1]
LARGEST = 60_000_000
"""Bytes of the core with all that it brings, as it is installed."""
LARGEST_COMPILED = 65_000_000
"""The same with the bytecode that Python makes of it."""
HEAVY = {*EXTRAS, *ALONE, "numpy", "IPython"}

LOADED = "import sys, json; print(json.dumps(sorted(sys.modules)))"

WORK = """
import harken
with harken.connect("shop.db") as db:
    db.sql("CREATE TABLE sale (city STRING, amount INT)")
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT city, sum(amount) s FROM sale GROUP BY city")
    sub = db.monitor("total")
    db.load("sale", [("Oslo", 3), ("Rome", 4)])
    db.sql("INSERT INTO sale VALUES (?, ?)", [("Oslo", 5)])
    assert [c.plus for c in sub.changes()][-1] == [("Oslo", 8)]
    assert db.sql("SELECT city FROM sale WHERE city RLIKE '^R'").scalar() == "Rome"
    assert "<td>Rome</td>" in db.sql("SELECT * FROM total")._repr_html_()
    db.amosql("create type item properties (quantity integer);")
    (item,) = db.load("item", [(1,)], ["quantity"])
    db.function("quantity")[item] = 130
    db.datalog('.decl e(a:symbol, b:symbol) e("a","b"). .decl p(a:symbol, b:symbol) '
               'p(a,b) :- e(a,b). p(a,c) :- p(a,b), e(b,c). .output p')
    print(db.explain("total"))
    db.lake_status()
"""

NEEDS = {
    "harken[arrow]": 'db.sql("SELECT 1").to_arrow()',
    "'harken[arrow]' pandas": 'db.sql("SELECT 1").to_pandas()',
    "'harken[arrow]' polars": 'db.sql("SELECT 1").to_polars()',
    "harken[lake]": 'db.lake("f", "table", key=["k"])',
    "harken[spark]": "__import__('harken').java_home()",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)], ROOT)
    (made,) = home.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its `bin`."""
    return installed(wheel, tmp_path_factory.mktemp("core"), "--compile-bytecode")


def installed(wheel: Path, home: Path, *options: str, extra: str = "") -> Path:
    """The `bin` of an environment with the wheel and an extra, in the locked versions."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    run([*uv, "venv", str(home / "venv"), "--python", sys.executable], home)
    lock = ["--constraint", str(unhashed(home))]
    python = ["--python", str(home / "venv/bin/python")]
    wanted = f"harken{extra} @ {wheel.as_uri()}"
    run([*uv, "pip", "install", *options, *python, *lock, wanted], home)
    return home / "venv" / "bin"


def unhashed(home: Path) -> Path:
    """The lock as constraints, which have no hashes: our own wheel could have none."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    path = home / "constraints.txt"
    path.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line.split(" ")[0]))
    return path


def ended_in(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """A command of that environment. A Spark session of other tests has set variables for its own
    Python, which are not passed on."""
    variables = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=directory, env=variables
    )


def run(command: list[str], directory: Path) -> str:
    ended = ended_in(command, directory)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_core_is_small(environment: Path) -> None:
    (packages,) = environment.parent.glob("lib/*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file()]
    bytecode = sum(path.stat().st_size for path in files if path.suffix == ".pyc")
    size = sum(path.stat().st_size for path in files)
    assert bytecode > 0
    assert size - bytecode < LARGEST, f"{size - bytecode:,} bytes"
    assert size < LARGEST_COMPILED, f"{size:,} bytes"
    there = {path.name for path in packages.iterdir()}
    assert not there & HEAVY
    assert (packages / "harken/py.typed").exists()
    assert (packages / "harken/lang/amosql/grammar.lark").exists()


def test_the_core_works_alone(environment: Path, tmp_path: Path) -> None:
    run([str(environment / "python"), "-c", WORK], tmp_path)


def test_the_commands_work_alone(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1 AS one;")
    command = str(environment / "harken")
    assert run([command, "--version"], tmp_path) == f"harken {harken.__version__}\n"
    assert run([str(environment / "python"), "-m", "harken", "run", "a.sql"], tmp_path) == "<1>\n"
    assert "Harken is well" in run([command, "doctor"], tmp_path)


def test_what_is_missing_is_named(environment: Path, tmp_path: Path) -> None:
    program = f"""
import harken
db = harken.connect()
for need in {list(NEEDS.values())}:
    try:
        eval(need)
    except harken.EngineError as error:
        print(error.report())
        print("--")
"""
    said = run([str(environment / "python"), "-c", program], tmp_path).split("--\n")
    for hint, each in zip(NEEDS, said, strict=False):
        assert each.startswith("[missing-package]")
        assert hint in each
    assert len(said) == len(NEEDS) + 1


def test_commands_name_what_is_missing(environment: Path, tmp_path: Path) -> None:
    harken.connect(tmp_path / "shop.db").close()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/project.yml").write_text("name: shop")
    for command, hint in (
        (["serve", "--db", "shop.db"], "pip install 'harken[server]'"),
        (["demo"], "pip install 'harken[spark]'"),
        (["apply", "shop"], "pip install 'harken[projects]'"),
    ):
        ended = ended_in([str(environment / "harken"), *command], tmp_path)
        assert ended.returncode == 1
        assert hint in ended.stderr
        assert "Traceback" not in ended.stderr


LAKE = """
import harken, pyarrow, sys
from deltalake import write_deltalake
write_deltalake("other", pyarrow.table({"k": [1, 2], "v": [1.5, 2.5]}))
with harken.connect("shop.db") as db:
    db.lake("stock", pyarrow.table({"item": ["a", "b"], "n": [1, 2]}), key=["item"])
    db.lake("other", "other", key=["k"])
    with db.transaction():
        db.function("stock")["a"] = 5
    sub = db.monitor("other")
    write_deltalake("other", pyarrow.table({"k": [3], "v": [3.5]}), mode="append")
    db.step()
    assert sub.changes()[0].plus == [(3, 3.5)]
    assert db.sql("SELECT sum(n) FROM stock").to_arrow().num_rows == 1
assert not {"pandas", "pyspark"} & sys.modules.keys()
"""
SERVICE = """
import harken, subprocess, sys
from pathlib import Path
harken.connect("shop.db").close()
command = [Path(sys.executable).with_name("harken"), "serve", "--db", "shop.db", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
    client = harken.Client(service.stdout.readline().split()[-1])
    client.sql("CREATE TABLE t (a INT)")
    client.sql("INSERT INTO t VALUES (1)")
    assert client.snapshot("t").plus == [(1,)]
    service.terminate()
"""


@pytest.mark.parametrize(
    ("extra", "work", "absent"),
    [
        ("[lake]", LAKE, {"pyspark", "pandas", "fastapi"}),
        ("[server]", SERVICE, {"pyarrow", "numpy", "pyspark"}),
    ],
)
def test_an_extra_works_alone(
    wheel: Path, tmp_path: Path, extra: str, work: str, absent: set[str]
) -> None:
    binaries = installed(wheel, tmp_path, extra=extra)
    (packages,) = binaries.parent.glob("lib/*/site-packages")
    assert not {path.name for path in packages.iterdir()} & absent
    run([str(binaries / "python"), "-c", work], tmp_path)


# --- with the extras installed, they are loaded only when they are used ------------------------


def loaded_after(program: str) -> set[str]:
    return set(json.loads(run([sys.executable, "-c", f"{program}; {LOADED}"], ROOT)))


def test_import_loads_errors_and_nothing_else() -> None:
    before, after = loaded_after("pass"), loaded_after("import harken")
    ours = {name for name in after if name.startswith("harken")}
    assert ours == {"harken", "harken.errors"}
    assert len(after - before) < 100


def test_a_session_loads_no_extra() -> None:
    after = loaded_after("import harken; harken.connect().sql('SELECT 1').one()")
    assert not {name.split(".")[0] for name in after} & HEAVY


def test_every_public_name_is_there() -> None:
    assert set(harken.__all__) <= set(dir(harken))
    assert all(getattr(harken, name) is not None for name in harken.__all__)
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        harken.conect  # noqa: B018
