"""`script/house` counts what its page says, and no class is a file cut in pieces by inheritance."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOUSE: dict[str, Any] = runpy.run_path(str(ROOT / "script/house"), run_name="house")

MOST_LINES = 600
"""Of a class with all its bases in this project. Before the house was moved it was 1,523."""
FACADE = "harken.api.database.Database"
"""What users call. Its methods check arguments and hand the work on; most of its lines document."""


def test_the_lines_of_a_class_are_those_of_its_bases_too() -> None:
    below = "class Below:\n    a = 1\n    b = 2\n"
    above = (
        "from harken.below import Below\nclass Middle(Below):\n    c = 3\nclass Top(Middle): ...\n"
    )
    found = {
        f"harken.{name}": (Path(name), ast.parse(text))
        for name, text in (("below", below), ("above", above))
    }
    sizes = HOUSE["class_sizes"](found)
    assert sizes == {"harken.below.Below": 3, "harken.above.Middle": 5, "harken.above.Top": 6}
    assert HOUSE["crossing_imports"](found) == 1


def test_a_walk_counts_first_visits_of_public_functions() -> None:
    calls = [
        ("api/database.py", "Database.sql"),
        ("api/database.py", "Database.commit"),
        ("ir/terms.py", "Variable.name"),
        ("database/catalog.py", "Catalog.function"),
        ("api/database.py", "Database.sql"),
        ("database/catalog.py", "Catalog._read"),
        ("database/objects.py", "Objects.find"),
        ("api/database.py", "Database.close"),
    ]
    assert HOUSE["measured_walk"](calls) == {"stops": 4, "files": 3, "crossings": 2}


def test_no_class_is_spread_over_a_tower_of_bases() -> None:
    sizes = HOUSE["class_sizes"](HOUSE["modules"](ROOT / "src/harken"))
    sizes.pop(FACADE)
    assert {name: n for name, n in sizes.items() if n > MOST_LINES} == {}


def test_the_walks_on_paper_are_short() -> None:
    walks = list(HOUSE["paper_walks"](ROOT))
    assert len(walks) == len(HOUSE["WALKS"])
    assert max(walk["stops"] for walk in walks) <= 15
