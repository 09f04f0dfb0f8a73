"""Random versions of a project: tables with seeds, views on each other, relations of Datalog."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

COLUMNS = {"a": "INT", "b": "INT DEFAULT 7", "c": "STRING DEFAULT 'x'"}
VALUES = {
    "k": st.integers(0, 5),
    "a": st.none() | st.integers(0, 3),
    "b": st.none() | st.integers(0, 3),
    "c": st.none() | st.sampled_from(["p", "q"]),
}


@dataclass(frozen=True)
class Version:
    """The files of a project by their names."""

    files: dict[str, str]


@st.composite
def versions(draw: st.DrawFn) -> Version:
    sql: list[str] = []
    seeds: list[str] = []
    known: dict[str, list[str]] = {}
    for name in ("t0", "t1"):
        if not draw(st.integers(0, 5)):
            continue
        columns = draw(st.permutations(["k", *draw(st.sets(st.sampled_from(sorted(COLUMNS))))]))
        keyed = name == "t0"
        types = {**COLUMNS, "k": "INT PRIMARY KEY" if keyed else "INT NOT NULL"}
        sql.append(f"CREATE TABLE {name} ({', '.join(f'{c} {types[c]}' for c in columns)});")
        known[name] = list(columns)
        rows = draw(seed_rows(columns, keyed))
        if rows:
            seeds.append(f"  {name}:\n" + "\n".join(f"    - {row}" for row in rows))
    for name in ("v0", "v1", "v2", "v3"):
        if known and draw(st.integers(0, 3)):
            text, columns = draw(view(name, known))
            sql.append(text)
            known[name] = columns
    files = {"views.sql": "\n".join(draw(st.permutations(sql))) or "-- none"}
    datalog = draw(relations(known))
    if datalog:
        files["relations.dl"] = datalog
    if seeds:
        files["project.yml"] = "seeds:\n" + "\n".join(seeds)
    return Version(files)


@st.composite
def seed_rows(draw: st.DrawFn, columns: list[str], keyed: bool) -> list[str]:
    given = draw(
        st.lists(
            st.fixed_dictionaries({each: VALUES[each] for each in columns}),
            max_size=4,
            unique_by=(lambda row: row["k"]) if keyed else None,
        )
    )
    shown = {None: "null"}
    return [
        "{" + ", ".join(f"{k}: {shown.get(v, v)}" for k, v in row.items()) + "}" for row in given
    ]


@st.composite
def view(draw: st.DrawFn, name: str, known: dict[str, list[str]]) -> tuple[str, list[str]]:
    source = draw(st.sampled_from(sorted(known)))
    columns = known[source]
    kind = draw(st.sampled_from(["VIEW", "MATERIALIZED VIEW"]))
    numbers = [each for each in columns if each != "c"]
    match draw(st.integers(0, 4)):
        case 0:
            query, found = f"SELECT * FROM {source}", columns
        case 1:
            found = draw(st.permutations(columns))[: draw(st.integers(1, len(columns)))]
            query = f"SELECT {', '.join(found)} FROM {source} WHERE {columns[0]} IS NOT NULL"
        case 2 if numbers:
            found = ["k", "n"] if "k" in columns else ["n"]
            key = "k, " if "k" in columns else ""
            group = " GROUP BY k" if key else ""
            query = f"SELECT {key}sum({numbers[0]}) AS n FROM {source}{group}"
        case 3 if numbers:
            found = ["k"]
            query = f"SELECT max({numbers[-1]}) AS k FROM {source}"
        case 4 if numbers:
            other = draw(st.sampled_from(sorted(known)))
            found = ["k", "n"]
            query = (
                f"SELECT l.{numbers[0]} AS k, count(*) AS n FROM {source} AS l "
                f"LEFT JOIN {other} AS r ON true GROUP BY l.{numbers[0]}"
            )
        case _:
            found = ["k"]
            query = f"SELECT count(*) AS k FROM {source}"
    return f"CREATE {kind} {name} AS {query};", list(found)


@st.composite
def relations(draw: st.DrawFn, known: dict[str, list[str]]) -> str:
    if not draw(st.booleans()):
        return ""
    kind = draw(st.sampled_from(["number", "symbol"]))
    values = ["1", "2", "3"] if kind == "number" else ['"a"', '"b"', '"c"']
    lines = [f".decl edge(x: {kind}, y: {kind})"]
    pairs = draw(st.sets(st.tuples(st.sampled_from(values), st.sampled_from(values)), max_size=3))
    lines += [f"edge({x}, {y})." for x, y in sorted(pairs)]
    if draw(st.booleans()):
        lines.append(f".decl path(x: {kind}, y: {kind})")
        rules = ["path(x, y) :- edge(x, y).", "path(x, z) :- path(x, y), edge(y, z)."]
        lines += rules[: draw(st.integers(1, 2))]
        if draw(st.booleans()):
            lines.append(f"path({values[0]}, {values[0]}).")
    return "\n".join(lines)
