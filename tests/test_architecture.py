"""Imports point one way, from the folders that serve people down to the values.

`PLAN` is the plan of `docs/architecture.md` as a table: which folders there are, and what each may
import besides itself. Every import statement counts, also one inside a function or under
`if TYPE_CHECKING`.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.harness.syntax import nodes

SRC = Path(__file__).parents[1] / "src"
TESTS = Path(__file__).parent

GROUND = {"errors", "limits", "network_guard", "packages", "stack", "setting", "settings"}
LANGUAGE = GROUND | {"values", "ir"}
CORE = LANGUAGE | {"calculus", "planner"}
ENGINE = CORE | {"engines", "engines.protocol"}
BELOW_DATABASE = ENGINE | {
    "maintenance",
    "maintenance.strategies",
    "propagation",
    "sources",
    "sources.kinds",
}
BELOW_CONSUMERS = BELOW_DATABASE | {"database"}
CONSUMERS = {
    *("consumers", "consumers.rules", "consumers.programs"),
    *("consumers.constraints", "consumers.monitors"),
}
LANGUAGES = {"lang", "lang.amosql", "lang.sql", "lang.datalog", "lang.continual"}
INTAKE = {"intake"}
CONTINUAL = {"notify", "notify.channels", "continual"}
STATEMENTS = {"statements", "statements.amosql", "statements.sql", "statements.datalog"}
PLAN = {
    "errors": set(),
    "stack": set(),
    "network_guard": {"errors"},
    "packages": {"errors"},
    "setting": {"errors"},
    "settings": {"errors", "setting"},
    "limits": {"errors"},
    "values": {"errors", "limits"},
    "ir": {"errors", "limits", "values"},
    "lang": LANGUAGE,
    "lang.amosql": LANGUAGE | {"lang"},
    "lang.sql": LANGUAGE | {"lang"},
    "lang.datalog": LANGUAGE | {"lang"},
    "lang.continual": LANGUAGE | {"lang", "lang.sql"},
    "calculus": {"errors", "ir", "values"},
    "planner": CORE,
    "engines": CORE | {"engines.protocol"},
    "engines.protocol": CORE | {"engines"},
    "engines.sqlite": ENGINE,
    "engines.delta": ENGINE,
    "engines.spark": ENGINE | {"engines.delta"},
    "sources": ENGINE | {"engines.delta", "engines.spark", "sources.kinds"},
    "sources.kinds": ENGINE | {"engines.delta", "engines.spark", "sources"},
    "sources.kinds.postgresql": ENGINE | {"sources", "sources.kinds"},
    "engines.placement": ENGINE | {"engines.sqlite", "engines.spark", "engines.delta", "sources"},
    "maintenance": ENGINE | {"maintenance.strategies"},
    "maintenance.strategies": ENGINE | {"maintenance"},
    "propagation": ENGINE | {"maintenance", "maintenance.strategies"},
    "database": BELOW_DATABASE,
    "consumers": BELOW_CONSUMERS,
    "consumers.rules": BELOW_CONSUMERS | {"consumers"},
    "consumers.programs": BELOW_CONSUMERS | {"consumers"},
    "consumers.constraints": BELOW_CONSUMERS | {"consumers"},
    "consumers.monitors": BELOW_CONSUMERS | {"consumers"},
    "notify": BELOW_CONSUMERS | {"notify.channels"},
    "notify.channels": BELOW_CONSUMERS | {"notify"},
    "continual": BELOW_CONSUMERS,
    "intake": BELOW_CONSUMERS,
    "statements": BELOW_CONSUMERS | INTAKE | CONSUMERS | CONTINUAL | LANGUAGES,
    "statements.amosql": BELOW_CONSUMERS | CONSUMERS | {"lang.amosql", "statements"},
    "statements.sql": BELOW_CONSUMERS
    | INTAKE
    | CONSUMERS
    | CONTINUAL
    | {"lang.sql", "lang.continual", "statements"},
    "statements.datalog": BELOW_CONSUMERS | CONSUMERS | {"lang.datalog", "statements"},
    "backup": BELOW_CONSUMERS | INTAKE | CONSUMERS | {"statements.sql"},
    "api": BELOW_CONSUMERS
    | INTAKE
    | CONSUMERS
    | CONTINUAL
    | STATEMENTS
    | LANGUAGES
    | {"backup", "engines.placement"},
    "project": BELOW_DATABASE | {"database", "statements", "api", "harken"},
}
# The outermost ring: it may import anything but the engines.
SURFACE = {
    *("harken", "__main__", "doctor"),
    *("client", "server", "cli", "shell", "pipeline", "dbapi", "dialect", "notebook", "console"),
    *("server.resources", "bench", "bench.tpch", "demo"),
}
SURFACE_ALLOWED = (
    BELOW_CONSUMERS
    | INTAKE
    | CONSUMERS
    | CONTINUAL
    | STATEMENTS
    | LANGUAGES
    | {"api", "backup", "project"}
    | SURFACE
)

TESTS_ONLY = {"cases", "costs", "generators", "harness", "laws", "models", "papers"}
"""The folders of `tests/` that stand for no folder of the source."""

PYSPARK_ALLOWED = ("harken.engines.spark", "harken.pipeline", "harken.sources")
NAMES_THAT_SAY_NOTHING = {"helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> list[tuple[str, Path]]:
    return [(module_name(path), path) for path in sorted(SRC.glob("harken/**/*.py"))]


def folder(module: str) -> str:
    """The folder of the plan that holds a module or a name in it.

    >>> folder("harken.ir.terms"), folder("harken.lang.sql.parser.parse"), folder("harken.connect")
    ('ir', 'lang.sql', 'harken')
    """
    parts = module.split(".")[1:]
    for length in (2, 1):
        name = ".".join(parts[:length])
        if len(parts) >= length and name in PLAN.keys() | SURFACE:
            return name
    return "harken"


def is_inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """The line and the absolute name of each thing that the module imports."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = origin(node, module, is_package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """What stands between `from` and `import`, its leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    package = module.split(".") if is_package else module.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


@dataclass(frozen=True)
class Facts:
    """What the tests ask of a file. Each file is parsed once for all of them."""

    imports: list[tuple[int, str]]
    attributes: list[tuple[int, str, str]]
    private: list[str]
    texts: list[tuple[int, str]]
    consumers: list[str]
    asked_kinds: list[tuple[int, set[str]]]


@cache
def facts(path: Path) -> Facts:
    source = path.read_text("utf-8")
    is_ours = path.is_relative_to(SRC)
    module = module_name(path) if is_ours else ""
    return Facts(
        list(imports(source, module, is_package=path.name == "__init__.py")),
        [each for each in attributes(source) if each[1] in SESSIONS or each[2] == "internals"],
        list(private_to_others(source)),
        [each for each in texts(source) if is_ours and SQL_STATEMENT.match(each[1])],
        list(consumers(source)),
        list(asked_kinds(source)),
    )


def wrong_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    return not_allowed(imports(source, module, is_package=is_package), module)


def not_allowed(imported: Iterable[tuple[int, str]], module: str) -> list[str]:
    own = folder(module)
    allowed = PLAN.get(own, SURFACE_ALLOWED) | {own}
    return [
        f"{module} imports {name}"
        for _, name in imported
        if (name.split(".")[0] == "harken" and folder(name) not in allowed)
        or (name.split(".")[0] == "pyspark" and not is_inside(module, PYSPARK_ALLOWED))
    ]


def test_imports_point_one_way() -> None:
    wrong = {
        complaint
        for module, path in modules()
        for complaint in not_allowed(facts(path).imports, module)
    }
    assert not wrong, "against the plan:\n" + "\n".join(sorted(wrong))


def test_the_tree_has_the_folders_of_the_plan() -> None:
    there = {
        ".".join(path.parent.relative_to(SRC / "harken").parts)
        for path in SRC.glob("harken/**/*.py")
    } - {"", "bench.tpch.queries"}
    modules_at_the_root = {path.stem for path in (SRC / "harken").glob("*.py")} - {"__init__"}
    planned = (PLAN.keys() | SURFACE) - {"harken"}
    assert there | modules_at_the_root == planned


DESIGNED = {
    *("errors", "settings", "values", "ir", "lang", "calculus", "planner", "maintenance"),
    *("engines", "sources", "database", "statements", "propagation", "consumers", "continual"),
    *("notify", "api", "server", "client", "cli", "shell", "pipeline", "bench", "demo"),
    *("lang.amosql", "lang.sql", "lang.datalog", "maintenance.strategies", "engines.protocol"),
    *("engines.sqlite", "engines.spark", "engines.delta", "engines.placement"),
    *("statements.amosql", "statements.sql", "statements.datalog"),
    *("consumers.rules", "consumers.constraints", "consumers.monitors", "notify.channels"),
}
"""The folders of the design; those that the project has got since do what it did not foresee."""
FLOOR_PLAN = (SRC.parent / "docs/architecture.md").read_text("utf-8")


def floors() -> dict[str, int]:
    """The folders in the table of the floor plan, each with its row."""
    table = FLOOR_PLAN.split("\n## Where things are\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {
        name.removesuffix(".py").strip("/").replace("/", "."): number
        for number, row in enumerate(rows)
        for name in re.findall(r"`([\w/.]+)`", row)
    }


def test_the_design_the_floor_plan_and_the_tree_have_the_same_folders() -> None:
    planned, documented = PLAN.keys() | SURFACE, floors().keys()
    assert planned >= DESIGNED
    assert planned >= documented
    others = {"harken", "__main__", "doctor"}
    missing = {
        each
        for each in planned - documented - others
        if each.split(".")[0] not in documented
        and not any(is_inside(name, (each,)) for name in documented)
    }
    assert not missing, f"docs/architecture.md says nothing of {sorted(missing)}"


def test_the_floor_plan_has_folders_in_the_order_of_imports() -> None:
    row = floors()
    below = [
        f"{importing} imports {imported}"
        for importing, allowed in PLAN.items()
        for imported in allowed
        if importing.split(".")[0] != imported.split(".")[0]
        and row.get(imported, -1) > row.get(importing, len(row))
    ]
    assert not below, below


SESSIONS = {"db", "database", "session", "_db", "_database"}
"""What variables and attributes that hold a session are called."""
SERVES_PEOPLE = ("cli", "client", "demo", "pipeline", "server", "shell")


def attributes(source: str) -> Iterator[tuple[int, str, str]]:
    """Each `name.attribute` and `.name.attribute` of a file, with its line."""
    for node in nodes(source):
        if isinstance(node, ast.Attribute):
            of = node.value
            name = of.id if isinstance(of, ast.Name) else getattr(of, "attr", "")
            yield node.lineno, name, node.attr


def test_nobody_reaches_into_a_session() -> None:
    """`db._anything` is for `api` and `database` alone, `db.internals` for tests and benchmarks."""
    root = SRC.parent
    found = [
        f"{path.relative_to(root)}:{line}: {name}.{attribute}"
        for path in [*SRC.glob("harken/**/*.py"), *root.glob("tests/**/*.py")]
        if not path.is_relative_to(SRC / "harken/api")
        and not path.is_relative_to(SRC / "harken/database")
        for line, name, attribute in facts(path).attributes
        if (name in SESSIONS and attribute.startswith("_") and not attribute.endswith("__"))
        or (
            attribute == "internals"
            and any(path.is_relative_to(SRC / "harken" / each) for each in SERVES_PEOPLE)
        )
    ]
    assert not found, "\n".join(found)


def folders(root: Path) -> set[str]:
    """The folders below `root` that hold Python files, with dots between their names."""
    found = {".".join(path.parent.relative_to(root).parts) for path in root.glob("**/*.py")}
    return found - {""}


def test_tests_have_the_folders_of_the_source() -> None:
    source = folders(SRC / "harken") - {"bench.tpch.queries"}
    there = folders(TESTS)
    strange = {each for each in there - source if each.split(".")[0] not in TESTS_ONLY}
    assert not strange, f"these test no folder of the source: {sorted(strange)}"
    # A folder whose modules lie in its subfolders is tested there.
    missing = {each for each in source if not any(is_inside(test, (each,)) for test in there)}
    assert not missing, f"nothing tests these folders: {sorted(missing)}"


def test_only_tests_of_the_whole_lie_beside_the_folders() -> None:
    beside = {path.stem for path in TESTS.glob("*.py")} - {"__init__", "conftest"}
    strange = {name for name in beside if not name.startswith("test_")}
    assert not strange, f"put these into models, generators or harness: {sorted(strange)}"


@pytest.mark.parametrize("name", ["Row", "Step", "Source"])
def test_a_general_name_means_one_thing(name: str) -> None:
    """One word for one thing: a name that could mean anything is defined once."""
    defines = re.compile(rf"^(class {name}\b|{name}(: \w+)? = )", re.MULTILINE)
    found = [
        str(path.relative_to(SRC))
        for path in SRC.glob("harken/**/*.py")
        if defines.search(path.read_text("utf-8"))
    ]
    assert len(found) == 1, found


def test_module_names_say_what_is_inside() -> None:
    vague = [
        module
        for module, _ in modules()
        if NAMES_THAT_SAY_NOTHING & set(module.replace(".", "_").split("_"))
    ]
    assert not vague, f"name these after what they hold: {vague}"


def consumers(source: str) -> Iterator[str]:
    """The classes of a file that are consumers."""
    for node in nodes(source):
        if isinstance(node, ast.ClassDef) and "Consumer" in map(ast.unparse, node.bases):
            yield node.name


def asked_kinds(source: str) -> Iterator[tuple[int, set[str]]]:
    """The line of each `isinstance`, and the names of the classes in it."""
    for node in nodes(source):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                names = {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}
                yield node.lineno, names


def test_nobody_asks_what_kind_of_consumer_it_has() -> None:
    """`isinstance` is for kinds of nodes and terms: a consumer says what it wants."""
    names = {"Consumer"} | {name for _, path in modules() for name in facts(path).consumers}
    assert {"Rules", "Monitors", "Constraints", "KeptViews"} < names
    found = [
        f"{module}:{line}"
        for module, path in modules()
        for line, asked in facts(path).asked_kinds
        if asked & names
    ]
    assert not found, found


PRIVATE_TO_LIBRARIES = {
    "dialect/compilers.py": "the parts of a query of SQLAlchemy, as its own dialects read them",
    "engines/spark/metrics.py": "the counters of a plan, which PySpark does not show otherwise",
    "engines/spark/spark_session.py": "whether PySpark has started a JVM, and its gateway",
    "lang/continual/row_tests.py": "the parser of sqlglot, which is extended from inside",
    "lang/sql/strict_parser.py": "the parser of sqlglot, which is extended from inside",
    "server/server_process.py": "os._exit, after a second Ctrl-C",
}
"""Where the private names of other people's libraries are used, and for what."""


def private_to_others(source: str) -> Iterator[str]:
    """Each `object._name` where neither the module nor one of its classes has that name."""
    own = set()
    for node in nodes(source):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                own.add(name)
    for node in nodes(source):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                pass
            case ast.Attribute(attr=name) if name.startswith("_") and not name.endswith("__"):
                if name not in own:
                    yield f"{node.lineno}: {ast.unparse(node)}"


def test_nobody_reaches_for_the_private_name_of_another_object() -> None:
    root = SRC / "harken"
    found = {str(path.relative_to(root)): facts(path).private for _, path in modules()}
    wrong = {file: lines for file, lines in found.items() if lines}
    assert wrong.keys() == PRIVATE_TO_LIBRARIES.keys(), wrong
    assert list(private_to_others("self._network._chooser.ask()")) == ["1: self._network._chooser"]


CUTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "split", "find"}
NO_RELATIONS = {"term", "variable", "op", "type_", "each.type", "columns[-1]", "column", "file"}
"""What has a name too and is no relation, nor what a relation was called by its user."""
MAKES_PLANS = (
    *("ir", "calculus", "planner", "maintenance", "propagation", "database", "consumers"),
    *("statements", "api", "engines.protocol", "engines.sqlite", "engines.placement"),
)


def cut_names(source: str) -> Iterator[str]:
    """Where the name or the id of something is looked into, by its parts or a pattern."""
    for node in nodes(source):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=of, attr="id" | "name"), attr=verb)
            ) if verb in CUTS and ast.unparse(of) not in NO_RELATIONS:
                yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.Call(
                func=ast.Attribute(attr="match" | "fullmatch" | "search" | "sub"), args=given
            ) if any(ast.unparse(each).endswith((".id", "relation.name")) for each in given):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_part_of_the_name_of_a_relation_means_anything() -> None:
    """What a relation is for is its `role`, and what it was made from is its `of`."""
    found = [
        f"{module}:{place}"
        for module, path in modules()
        if is_inside(module.removeprefix("harken."), MAKES_PLANS)
        for place in cut_names(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('relation.id.startswith("old ")', 1),
        ('each.relation.name.removeprefix("m_")', 1),
        ('re.match("Δ(.*)", goal.id)', 1),
        ('variable.name.startswith("_G")', 0),
    ],
)
def test_a_look_into_a_name_is_found(source: str, count: int) -> None:
    assert len(list(cut_names(source))) == count


def computed_values(source: str) -> Iterator[str]:
    """Where the value of a constant is computed with or compared with another than by equality."""
    for node in nodes(source):
        parts: list[ast.expr] = []
        match node:
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                parts = [operand]
            case ast.Compare(left=left, ops=ops, comparators=others) if any(
                isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops
            ):
                parts = [left, *others]
        if any(isinstance(each, ast.Attribute) and each.attr == "value" for each in parts):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_the_ir_evaluates_nothing() -> None:
    """It knows the types of values, and of functions their names and signatures: what computes lies
    in `values` and in the engines."""
    folders = [(module, path) for module, path in modules() if folder(module) == "ir"]
    assert len(folders) > 10
    wrong = [
        f"{module} imports {name}"
        for module, path in folders
        for _, name in imports(path.read_text("utf-8"), module)
        if name.split(".")[0] in ("math", "operator", "statistics", "re", "random")
        or (name.startswith("harken.values.") and not name.startswith("harken.values.types."))
    ]
    wrong += [
        f"{module}:{place}"
        for module, path in folders
        for place in computed_values(path.read_text("utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
    assert list(computed_values("left.value + right.value")) == ["1: left.value + right.value"]
    assert not list(computed_values("left.value == right.value"))


TESTS_IN_LIBRARIES = {
    "database/test_changes.py": "what Jupyter calls",
    "database/test_frames.py": "what Jupyter calls",
    "engines/spark/test_faults.py": "Spark's own errors",
    "engines/spark/test_guard.py": "Spark's own plans",
    "engines/spark/test_spark_session.py": "whether PySpark has a JVM",
    "harness/distribution.py": "pytest-xdist looks for groups where pytest keeps no ids now",
    "harness/warm_python.py": "os._exit, in a forked process",
    "laws/test_patterns.py": "Java's own regular expressions",
}
"""Where tests use private names of other people's libraries, or names that those call."""


def test_no_test_reaches_for_a_private_name() -> None:
    """A test uses what users or other packages may use: a method or a hook is public for it."""
    found = {
        str(path.relative_to(TESTS)): facts(path).private for path in sorted(TESTS.glob("**/*.py"))
    }
    wrong = {file: lines for file, lines in found.items() if lines}
    assert wrong.keys() == TESTS_IN_LIBRARIES.keys(), wrong


SQL_STATEMENT = re.compile(
    r"\s*(SELECT .* FROM|INSERT (INTO|OR)|DELETE FROM|UPDATE \S+ SET|PRAGMA|SAVEPOINT"
    r"|(CREATE|DROP|ALTER) (TEMP |UNIQUE )?(TABLE|INDEX|TRIGGER|VIEW) )",
    re.DOTALL,
)
SPEAKS_SQL = (
    *("engines", "lang.sql", "statements.sql", "cli", "project", "bench", "demo"),
    *("sources.kinds", "server.resources.examples"),
)
"""The engines, the language of that name, those who use it as a user does, and databases outside
that understand nothing else."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string of a module, docstrings and hints of errors left out;
    `?` stands for what an f-string puts in."""
    left_out = {
        id(part)
        for node in nodes(source)
        if isinstance(node, ast.Expr) or (isinstance(node, ast.keyword) and node.arg == "hint")
        if isinstance(node.value, ast.Constant | ast.JoinedStr)
        for part in ast.walk(node.value)
    }
    joined = (node for node in nodes(source) if isinstance(node, ast.JoinedStr))
    left_out |= {id(part) for each in joined for part in each.values}
    for node in nodes(source):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (str(v.value) if isinstance(v, ast.Constant) else "?" for v in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_only_engines_know_sql_text() -> None:
    found = [
        f"{module}:{line}: {text[:60]}"
        for module, path in modules()
        if not is_inside(module.removeprefix("harken."), SPEAKS_SQL)
        for line, text in facts(path).texts
    ]
    assert not found, "\n".join(found)


def test_sql_text_is_found() -> None:
    source = 'connection.run(f"DELETE FROM {table}")\nraise Fault("no", hint="DROP TABLE t")'
    assert [bool(SQL_STATEMENT.match(text)) for _, text in texts(source)].count(True) == 1


LONG = {
    "api/database.py": "one short method for everything a session offers, with its documentation",
    "settings.py": "one table: every setting with what it means",
}
"""The files of more than 500 lines."""


def test_a_file_of_more_than_500_lines_has_a_reason() -> None:
    root = SRC / "harken"
    long = {
        str(path.relative_to(root))
        for _, path in modules()
        if len(path.read_text("utf-8").splitlines()) > 500
    }
    assert long <= LONG.keys(), f"two ideas each: {sorted(long - LONG.keys())}"


def test_no_test_depends_on_the_speed_of_the_machine() -> None:
    """What is to be cheap is counted (`tests/costs`); nobody waits for a fixed time."""
    timed = re.compile(
        r"^\s*assert .*\b(process_time|perf_counter|monotonic|thread_time)\(\)|\btime\.sleep\(",
        re.MULTILINE,
    )
    found = [
        str(path.relative_to(TESTS))
        for path in TESTS.glob("**/*.py")
        if path != Path(__file__)
        and path.parent != TESTS / "harness/foreign"  # functions that hang are limited there
        and timed.search(path.read_text("utf-8"))
    ]
    assert not found, found


PARALLEL = ("engines", "lang", "statements")
"""Their subfolders answer the same questions: each language has a parser, each engine a query."""
NAMED_AFTER = ("bench", "demo", "maintenance.strategies", "sources.kinds")
"""A module is named after the benchmark, the demonstration, the strategy or the kind of source that
it is."""


def test_a_file_name_tells_what_the_file_is() -> None:
    """A name stands once, except in folders that are parallel, where the folder tells the rest."""
    places: dict[str, set[str]] = {}
    for module, path in modules():
        parts = module.split(".")[1:]
        if path.name != "__init__.py" and not is_inside(".".join(parts), NAMED_AFTER):
            parallel = len(parts) > 2 and parts[0] in PARALLEL
            places.setdefault(path.name, set()).add(
                f"{parts[0]}.*" if parallel else ".".join(parts[:-1])
            )
    twice = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert not twice, twice


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("harken.ir.terms", "import harken.lang.sql"),
        ("harken.ir.terms", "from harken import calculus"),
        ("harken.ir.terms", "from harken import connect"),
        ("harken.ir.terms", "import harken"),
        ("harken.ir.terms", "from ..lang import sql"),
        ("harken.ir.terms", "from .. import lang"),
        ("harken.planner.cost", "def f():\n    from harken.engines import protocol"),
        ("harken.lang.sql.parser", "if TYPE_CHECKING:\n    import harken.database"),
        ("harken.statements.sql.creation", "from harken.statements.datalog import text"),
        ("harken.propagation.wave", "from harken.consumers.rules import rules"),
        ("harken.propagation.wave", "from harken.engines.sqlite import engine"),
        ("harken.database.catalog", "import pyspark.sql"),
        ("harken.cli", "from pyspark.sql import SparkSession"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert wrong_imports(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("harken.ir.terms", "from . import types\nfrom .types import Type\nimport math"),
        ("harken.ir.terms", "from ..errors import HarkenError"),
        ("harken.engines.spark.spark_session", "from pyspark.sql import SparkSession"),
        ("harken.database.catalog", "from harken import engines, ir, values"),
        ("harken.cli", "import harken.server"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    assert wrong_imports(source, module) == []


def test_relative_imports_in_a_package_start_at_the_package() -> None:
    assert wrong_imports("from . import terms", "harken.ir", is_package=True) == []
    assert wrong_imports("from .. import lang", "harken.ir", is_package=True)


@pytest.mark.parametrize("program", ["import harken", "import harken; harken.connect()"])
def test_a_resident_run_does_not_load_spark(program: str) -> None:
    check = "import sys; sys.exit(bool({'pyspark', 'py4j'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", f"{program}; {check}"], check=True)
