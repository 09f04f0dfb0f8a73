"""The `harken` command, as a person or a script meets it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken import doctor
from harken.doctor import Health
from tests.harness.commands import Command

ITEMS = """\
create type item properties (name charstring, quantity integer);
create item(name, quantity) instances :pen("pen", 12), :ink("ink", 3);
"""


# --- run -----------------------------------------------------------------------------------


def test_results_are_lines(command: Command, program: Callable[..., Path]) -> None:
    file = program(ITEMS + "select i, quantity(i) for each item i; print(name(:ink), 1.5);")
    assert command("run", file) == (0, "<:pen, 12>\n<:ink, 3>\nink 1.5\n", "")


def test_results_are_json(command: Command, program: Callable[..., Path]) -> None:
    file = program(ITEMS + "select i, quantity(i) for each item i; print(name(:ink), 1.5);")
    assert command("run", "--format", "json", file).results == [
        {
            "kind": "rows",
            "columns": ["i", "quantity"],
            "types": ["item", "integer"],
            "rows": [[":pen", 12], [":ink", 3]],
        },
        {"kind": "print", "values": ["ink", 1.5]},
    ]


def test_a_query_without_rows_prints_nothing(
    command: Command, program: Callable[..., Path]
) -> None:
    assert command("run", program("select t for each type t where name(t) = '';")).out == ""


def test_files_share_a_session(command: Command, program: Callable[..., Path]) -> None:
    first, second = program(ITEMS), program("select name(:pen);", "q.amosql")
    assert command("run", first, second).out == '<"pen">\n'


def test_standard_input_is_amosql(command: Command) -> None:
    assert command("run", "-", stdin=b'print("\xc3\xa9");') == (0, "é\n", "")


def test_a_file_that_ends_well_is_committed(
    command: Command, program: Callable[..., Path], tmp_path: Path
) -> None:
    db = tmp_path / "shop.db"
    assert command("run", program(ITEMS), "--db", db).code == 0
    assert command("run", program("print(count(select i for each item i));"), "--db", db).out == (
        "2\n"
    )


def test_an_error_has_a_place_a_mark_and_a_hint(
    command: Command, program: Callable[..., Path]
) -> None:
    file = program(ITEMS + "set quantiy(:pen) = 5;")
    outcome = command("run", file)
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err == (
        f"{file}:3:5: [unknown-function] there is no function quantiy\n"
        "  set quantiy(:pen) = 5;\n"
        "      ^^^^^^^^^^^^^\n"
        "hint: did you mean quantity?\n"
    )


def test_an_error_is_also_a_line_of_json(command: Command, program: Callable[..., Path]) -> None:
    file = program(ITEMS + "print(1);\nset quantiy(:pen) = 5;")
    outcome = command("run", file, "--format", "json")
    assert outcome.code == 1
    assert outcome.results == [
        {"kind": "print", "values": [1]},
        {
            "kind": "error",
            "code": "unknown-function",
            "message": "there is no function quantiy",
            "file": str(file),
            "line": 4,
            "column": 5,
            "hint": "did you mean quantity?",
        },
    ]
    assert outcome.err.startswith(f"{file}:4:5: [unknown-function]")


def test_an_error_undoes_its_file_and_stops_the_rest(
    command: Command, program: Callable[..., Path], tmp_path: Path
) -> None:
    db = tmp_path / "shop.db"
    good = program(ITEMS, "good.amosql")
    bad = program("set quantity(:pen) = 99;\nprint(1/0);", "bad.amosql")
    rest = program('print("never");', "rest.amosql")
    outcome = command("run", good, bad, rest, "--db", db)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"{bad}:2:")
    with harken.connect(str(db)) as database:
        quantities = database.amosql("select quantity(i) for each item i;").rows
    assert sorted(quantities) == [(3,), (12,)]


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("p.txt", b"", "unknown-suffix"),
        ("program", b"", "unknown-suffix"),
        ("p.dl", b"// \xff", "not-utf-8"),
        ("p.amosql", b"print(1);\nprint('\xff');", "not-utf-8"),
    ],
)
def test_a_file_that_cannot_be_run(
    name: str, data: bytes, code: str, command: Command, program: Callable[..., Path]
) -> None:
    file = program(data, name)
    outcome = command("run", file, "--format", "json")
    assert outcome.code == 1
    place = f"{file}:{data[: data.index(0xFF)].count(10) + 1}" if code == "not-utf-8" else file
    assert outcome.err.startswith(f"{place}: [{code}] ")
    assert [line["code"] for line in outcome.results] == [code]
    assert outcome.results[0]["file"] == str(file)


def test_a_file_that_cannot_be_read_is_found_before_anything_runs(
    command: Command, program: Callable[..., Path], tmp_path: Path
) -> None:
    for missing, reason in (("no.amosql", "no such file or directory"), (".", "is a directory")):
        path = tmp_path / missing
        outcome = command("run", program("print(1);"), path)
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err == f"{path}: [cannot-read] the file cannot be read: {reason}\n"


def test_a_file_that_is_not_a_database(command: Command, program: Callable[..., Path]) -> None:
    other = program("this is no database, though it is long enough to be one" * 20, "x.db")
    outcome = command("run", program("print(1);"), "--db", other)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"{other}: [not-a-database] ")


def test_functions_in_the_lake(
    command: Command, program: Callable[..., Path], tmp_path: Path
) -> None:
    query = "select i, quantity(i) for each item i;"
    db = ("--db", tmp_path / "shop.db")
    expected = "<:pen, 12>\n<:ink, 3>\n"
    assert command("run", program(ITEMS + query), "--engine", "lake", *db) == (0, expected, "")
    assert (tmp_path / "shop.lake/quantity/_delta_log").is_dir()
    again = command(
        "run", program("select q for each item i, integer q where quantity(i) = q;"), *db
    )
    assert sorted(again.out.split()) == ["<12>", "<3>"]


def test_a_wrong_command_line_exits_with_2(command: Command) -> None:
    assert command("run").code == 2
    assert command("run", "x.amosql", "--format", "xml").code == 2


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        (["run", "--fromat", "json", "x"], ["--format"]),
        (["run", "--bogus", "x"], ["--db", "--engine", "--format", "--trace"]),
        (["explain", "-x", "y"], ["--db", "--format"]),
        (["--bogus"], ["--version", "--help"]),
        (["demo", "--bogus"], ["--help"]),
    ],
)
def test_an_unknown_option_is_answered_with_those_there_are(
    command: Command, arguments: list[str], listed: list[str]
) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert "No such option" in err
    _, _, answer = err.partition("No such option")
    assert all(name in answer for name in listed)


def test_a_bug_is_a_short_message(
    command: Command, program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(harken.Database, "run_program", broken)
    monkeypatch.delenv("HARKEN_DEBUG", raising=False)
    outcome = command("run", program("print(1);"))
    assert outcome.code == 1
    assert "[internal] ZeroDivisionError: oops" in outcome.err
    assert "report" in outcome.err
    assert "Traceback" not in outcome.err
    monkeypatch.setenv("HARKEN_DEBUG", "1")
    assert "Traceback" in command("run", program("print(1);")).err


# --- run, as a process ---------------------------------------------------------------------


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harken", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


LONG = ITEMS + "commit; set quantity(:pen) = 99;\n" + 'print("line");\n' * 30_000
"""Prints more than a pipe holds, so it cannot have ended while nobody reads."""


@pytest.fixture
def long_run(program: Callable[..., Path], tmp_path: Path) -> subprocess.Popen[str]:
    process = start("run", program(LONG), "--db", tmp_path / "shop.db")
    assert process.stdout is not None
    assert process.stdout.readline() == "line\n"
    return process


def committed_quantities(path: Path) -> list[tuple[int]]:
    with harken.connect(str(path)) as db:
        return sorted(db.amosql("select quantity(i) for each item i;").rows)


def test_a_closed_pipe_ends_it_quietly(long_run: subprocess.Popen[str], tmp_path: Path) -> None:
    assert long_run.stdout is not None
    assert long_run.stderr is not None
    long_run.stdout.close()
    with long_run.stderr as errors:
        assert errors.read() == ""
    assert long_run.wait() == 1
    assert committed_quantities(tmp_path / "shop.db") == [(3,), (12,)]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_rolls_back_and_exits_with_130(
    long_run: subprocess.Popen[str], tmp_path: Path
) -> None:
    long_run.send_signal(signal.SIGINT)
    _, errors = long_run.communicate()
    assert errors.strip() == ""
    assert long_run.returncode == 130
    assert committed_quantities(tmp_path / "shop.db") == [(3,), (12,)]


# --- run, Datalog --------------------------------------------------------------------------

CLOSURE = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    directory = tmp_path / "facts"
    directory.mkdir()
    (directory / "edge.facts").write_text("a\tb\nb\tc\n")
    return directory


def test_facts_come_from_a_directory_and_rows_go_to_another(
    command: Command,
    program: Callable[..., Path],
    facts: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert command("run", program(CLOSURE, "c.dl"), "-F", facts, "-D", out) == (0, "", "")
    assert (out / "path.csv").read_text() == "a\tb\na\tc\nb\tc\n"


def test_both_are_the_current_directory(
    command: Command,
    program: Callable[..., Path],
    facts: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(facts)
    assert command("run", program(CLOSURE, "c.dl")) == (0, "", "")
    assert (facts / "path.csv").read_text() == "a\tb\na\tc\nb\tc\n"


def test_output_on_standard_output(
    command: Command,
    program: Callable[..., Path],
    facts: Path,
) -> None:
    file = program(CLOSURE + ".printsize path\n", "c.dl")
    assert command("run", file, "-F", facts, "-D", "-").out == (
        "---------------\npath\nx\ty\n===============\na\tb\na\tc\nb\tc\n===============\npath\t3\n"
    )


def test_results_of_datalog_are_json(
    command: Command,
    program: Callable[..., Path],
    facts: Path,
) -> None:
    script = """
        .printsize edge
        ?- path("a", x).
        .monitor path
        -edge("b", "c").
        +edge("b", "d").
        .commit
    """
    file = program(CLOSURE + script, "c.dl")
    assert command("run", file, "-F", facts, "-D", "-", "--format", "json").results == [
        {"kind": "rows", "columns": ["x"], "types": ["charstring"], "rows": [["b"], ["c"]]},
        {
            "kind": "change",
            "view": "path",
            "plus": [["a", "d"], ["b", "d"]],
            "minus": [["a", "c"], ["b", "c"]],
        },
        {
            "kind": "rows",
            "relation": "path",
            "columns": ["x", "y"],
            "types": ["charstring", "charstring"],
            "rows": [["a", "b"], ["a", "d"], ["b", "d"]],
        },
        {"kind": "print", "values": ["edge", 2]},
    ]


def test_programs_of_all_languages_share_a_session(
    command: Command,
    program: Callable[..., Path],
) -> None:
    table = program("CREATE TABLE n (x INT); INSERT INTO n VALUES (1), (5);", "t.sql")
    rules = program(".decl big(x: number) big(x) :- n(x), x > 3.", "r.dl")
    query = program("SELECT * FROM big;", "q.sql")
    assert command("run", table, rules, query) == (0, "<5>\n", "")


def test_a_program_is_kept_in_a_database(
    command: Command,
    program: Callable[..., Path],
    facts: Path,
    tmp_path: Path,
) -> None:
    db = tmp_path / "closure.db"
    file = program(CLOSURE, "c.dl")
    assert command("run", file, "-F", facts, "-D", tmp_path, "--db", db).code == 0
    (facts / "edge.facts").write_text("c\td\n")
    assert command("run", file, "-F", facts, "-D", tmp_path, "--db", db).code == 0
    assert len((tmp_path / "path.csv").read_text().splitlines()) == 6
    with harken.connect(db) as database:
        assert len(database.sql("SELECT * FROM path").rows) == 6


def test_a_warning_goes_to_standard_error(
    command: Command,
    program: Callable[..., Path],
) -> None:
    file = program('.pragma "legacy"\n.decl p(x: number) inline\np(1).\n?- p(x).', "p.dl")
    outcome = command("run", file)
    assert (outcome.code, outcome.out) == (0, "<1>\n")
    assert outcome.err == (
        f"{file}:1:1: a pragma has no effect [warning]\n"
        f"{file}:2:20: `inline` has no effect [warning]\n"
    )


def test_an_error_names_the_file_and_the_place(
    command: Command,
    program: Callable[..., Path],
) -> None:
    file = program(".decl p(x: number)\np(x) :- q(x).", "p.dl")
    outcome = command("run", file, "--format", "json")
    assert outcome.code == 1
    assert outcome.err.startswith(f"{file}:2:9: [unknown-relation] there is no relation q\n")
    assert outcome.results[0]["code"] == "unknown-relation"


# --- detached actions ----------------------------------------------------------------------

MAILING = """
create function sent() -> bag of charstring;
create function send(charstring text) -> boolean as foreign "mailing:send";
create rule tell() detached as
    for each item i, charstring text when quantity(i) = 0 and name(i) = text
    do begin add sent() = text; send(text); end;
activate tell(); commit;
set quantity(:pen) = 0; commit;
"""
DOWN = 'def send(text):\n    raise ConnectionError("the server is down")\n'


@pytest.fixture
def mailing(
    command: Command,
    program: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[object, ...]:
    """A database with an action that failed, as options."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mailing", raising=False)
    program(DOWN, "mailing.py")
    options = ("--db", tmp_path / "mail.db")
    outcome = command("run", program(ITEMS + MAILING), *options)
    assert outcome.code == 1
    assert "the transaction is committed, but detached action" in outcome.err
    assert "nothing of this statement was done" not in outcome.err
    return options


def test_a_failed_action_is_listed_and_retried(
    command: Command, mailing: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (listed,) = command("actions", "list", *mailing, "--format", "json").results
    columns, rows = listed["columns"], listed["rows"]
    assert isinstance(columns, list)
    assert isinstance(rows, list)
    action = dict(zip(columns, rows[0], strict=True))
    assert (action["rule"], action["attempts"]) == ("tell", 1)
    assert "the server is down" in action["error"]
    assert command("actions", "retry", *mailing).code == 1
    monkeypatch.setattr(sys.modules["mailing"], "send", lambda text: None)
    assert command("actions", "retry", action["number"], *mailing) == (0, "", "")
    assert command("actions", "list", *mailing) == (0, "", "")
    assert command("shell", *mailing, "--language", "amosql", stdin=b"sent();").out == '<"pen">\n'


def test_a_failed_action_is_discarded(command: Command, mailing: tuple[object, ...]) -> None:
    shown = command("actions", "list", *mailing).out
    number = shown.lstrip("<").split(",")[0]
    assert command("actions", "discard", number, *mailing) == (0, "", "")
    assert command("actions", "list", *mailing).out == ""
    again = command("actions", "discard", number, *mailing)
    assert (again.code, again.out) == (1, "")
    assert f"there is no detached action {number}" in again.err
    assert command("actions", "discard", *mailing).code == 2


# --- explain and doctor --------------------------------------------------------------------


@pytest.fixture
def shop(command: Command, program: Callable[..., Path], tmp_path: Path) -> Path:
    text = ITEMS + "create function twice(item i) -> integer as select quantity(i) * 2;"
    db = tmp_path / "shop.db"
    assert command("run", program(text), "--db", db).code == 0
    return db


def test_explain_shows_clauses_and_sql(command: Command, shop: Path) -> None:
    outcome = command("explain", "twice", "--db", shop, "--verbose")
    assert outcome.code == 0
    assert "quantity_item,integer(I" in outcome.out
    assert "SELECT" in outcome.out
    (line,) = command("explain", "twice", "--db", shop, "--verbose", "--format", "json").results
    assert line["kind"] == "function"
    assert line["name"] == "twice(item)"
    assert "quantity_item,integer(I" in line["clauses"]
    assert line["sql"].startswith("SELECT")


def test_explain_helps_where_it_cannot(command: Command, shop: Path) -> None:
    unknown = command("explain", "twise", "--db", shop)
    assert unknown.code == 1
    assert unknown.err.startswith("[unknown-function]")
    assert "twice" in unknown.err
    assert command("explain", "twice", "--db", shop, "--format", "svg").out.startswith("<svg")
    missing = command("explain", "twice", "--db", shop.with_name("none.db"))
    assert "[cannot-open]" in missing.err
    assert not shop.with_name("none.db").exists()


def test_explain_of_a_program_of_production_rules(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.dl"
    file.write_text(".decl a(x: number) .decl b(x: number) rule r: a(x), !b(x) -> b(x). .run")
    outcome = command("explain", str(file))
    assert "r : set-oriented, changes {+b}" in outcome.out
    file.write_text("rule r: nothing(x) -> b(x).")
    assert "unknown-relation" in command("explain", str(file)).err


def test_doctor_finds_the_resident_engine_well(command: Command) -> None:
    outcome = command("doctor")
    assert outcome.code == 0
    assert "resident engine  works" in outcome.out


def test_doctor_warns_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = doctor.java()
    assert finding.health is Health.WARNING
    assert "JAVA_HOME" in finding.remedy
    assert doctor.is_well([finding])


def test_doctor_reads_the_version_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for version, health in (("1.8.0_402", Health.WARNING), ("21.0.2", Health.WELL)):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        assert doctor.java().health is health


def test_doctor_compares_pyspark_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert doctor.pyspark_python().health is Health.WELL
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    assert sys.executable in doctor.pyspark_python().remedy
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert sys.executable in doctor.pyspark_python().found


def test_doctor_knows_a_java_home_without_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(tmp_path) in doctor.java().found


@pytest.mark.parametrize(
    ("check", "version", "remedy"),
    [
        (doctor.pyspark, "4.3.1", ""),
        (doctor.pyspark, "3.5.0", "'pyspark>=4.3'"),
        (doctor.pyspark, "4.4.0rc1", "'pyspark<4.4'"),
        (doctor.pandas, "3.0.0", "'pandas<3'"),
        (doctor.deltalake, "1.1.9", "'deltalake>=1.2'"),
        (doctor.pyarrow, "26.0", ""),
    ],
)
def test_doctor_knows_the_versions_that_fit(
    monkeypatch: pytest.MonkeyPatch,
    check: Callable[[], doctor.Finding],
    version: str,
    remedy: str,
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    finding = check()
    assert version in finding.found
    assert finding.health is (Health.WARNING if remedy else Health.WELL)
    assert remedy in finding.remedy


def test_doctor_finds_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.memory().health is Health.WELL
    monkeypatch.setattr("harken.engines.machine.memory", lambda: 2**29)
    assert "close other programs" in doctor.memory().remedy


def test_doctor_finds_no_place_to_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctor.current_directory().health is Health.WELL
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert "TMPDIR" in doctor.temporary_directory().remedy
    monkeypatch.setattr("harken.doctor.LEAST_SPACE", sys.maxsize)
    assert "make room" in doctor.current_directory().remedy
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "deleted" in doctor.current_directory().found


def test_doctor_warns_of_another_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert doctor.spark_home().health is Health.WELL
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert "unset SPARK_HOME" in doctor.spark_home().remedy


# --- programs and their surroundings -------------------------------------------------------


def test_modules_beside_a_script_are_found(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each script has its own, and Python's search path is as it was."""
    before = list(sys.path)
    declare = 'create function post(integer x) -> integer as foreign "beside_me:post";\n'
    for number, name in enumerate(("one", "two"), start=1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside_me.py").write_text(
            f"import helper_{name}\ndef post(x):\n    return x + helper_{name}.number\n"
        )
        (tmp_path / name / f"helper_{name}.py").write_text(f"number = {number}\n")
        (tmp_path / name / "script.amosql").write_text(f"{declare}select post(10);\n")
    monkeypatch.chdir(tmp_path / "one")
    for number, name in enumerate(("one", "two"), start=1):
        assert command("run", tmp_path / name / "script.amosql").out == f"<{10 + number}>\n"
    assert sys.path == before


def test_without_java_the_demo_says_so_once(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "harken", "demo"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)},
    )
    assert ended.returncode == 1
    assert (ended.stdout + ended.stderr).count("[no-java]") == 1
    assert "harken demo language" in ended.stderr
