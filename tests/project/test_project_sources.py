"""A project has sources and domains, in its .sql files or in sections of its .yml files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harken.project.plan import make_plan
from harken.project.project_files import read_project
from tests.project.test_applying import Shop

YAML = """
sources:
  price:
    kind: json
    options: {path: prices.json, suspect_share: 0.9}
    key: id
    every: 20 minutes
  now:
    kind: json
    options: {path: prices.json, take: [id, price]}
    mirror: none
domains:
  costs:
    members:
      price: {number: id, cost: [price]}
      now: {number: id}
    unavailable: skip
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    (tmp_path / "prices.json").write_text(json.dumps([{"id": 1, "price": 1.5, "place": "Oslo"}]))
    return Shop(tmp_path)


def is_settled(shop: Shop) -> bool:
    return make_plan(shop.db, read_project(shop.directory, {})).is_empty


def statement(shop: Shop, name: str) -> str:
    return str(shop.db.sources.describe(name)["statement"])


def test_sections_of_yaml_are_statements(shop: Shop) -> None:
    said = "\n".join(shop.apply(p_yml=YAML))
    assert "+ source price" in said
    assert "+ domain costs" in said
    assert "KEY (id) POLL EVERY 20 MINUTES" in statement(shop, "price")
    assert f"path '{shop.directory}/prices.json'" in statement(shop, "price")
    assert statement(shop, "now").endswith("take 'id, price') MIRROR none")
    assert shop.rows("SELECT * FROM costs") == [(1, 1.5, "price"), (1, None, "now")]
    assert is_settled(shop)


def test_an_edit_alters_the_source_without_reading_it_anew(shop: Shop) -> None:
    shop.apply(p_yml=YAML, a_sql="CREATE VIEW dear AS SELECT id FROM price WHERE price > 1")
    changes = shop.db.monitor("price")
    said = "\n".join(shop.apply(p_yml=YAML.replace("20 minutes", "1 hour").replace("0.9", "0.5")))
    assert "~ source price" in said
    assert "POLL EVERY 1 HOUR" in statement(shop, "price")
    assert "suspect_share 0.5" in statement(shop, "price")
    assert (changes.changes(), is_settled(shop)) == ([], True)
    changes.close()
    shop.apply(p_yml=YAML.replace("0.9}", "0.9, take: [id, price]}"))
    assert shop.rows("SELECT * FROM price") == [(1, 1.5)]
    assert shop.rows("SELECT * FROM dear") == [(1,)]
    shop.apply(p_yml=YAML.replace("    key: id\n", ""))
    assert "none" in str(shop.db.sources.describe("price")["key"])
    assert shop.rows("SELECT * FROM dear") == [(1,)]
    assert is_settled(shop)


def test_what_leaves_the_project_is_dropped(shop: Shop) -> None:
    shop.apply(p_yml=YAML)
    shop.apply(p_yml="tests: []")
    assert (shop.db.sources.list(), shop.db.domains.list()) == ([], [])


def test_a_source_that_is_there_is_taken_over(shop: Shop) -> None:
    shop.db.source("price", "json", path=shop.directory / "prices.json", key="id")
    text = statement(shop, "price")
    said = "\n".join(shop.apply(a_sql=text))
    assert "= source price, is there already" in said
    shop.apply(a_sql=text.replace(" KEY (id)", " POLL EVERY 1 MINUTE"))
    assert is_settled(shop)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sources: [a]", "names with values"),
        ("sources:\n  price: {options: {}}", "the source price has no kind"),
        ("sources:\n  price: {kind: jsn}", "jsn"),
        ("sources:\n  price: {kind: json, every: soon}", "length of time"),
        ("sources:\n  price: {kind: json, mirror: maybe}", "true or false"),
        ("sources:\n  price: {kin: json}", "did you mean kind"),
        ("sources:\n  price: {kind: json, options: {path: no.json}}", "no.json"),
        ("sources:\n  price: {kind: json, options: {path: prices.json, pth: 1}}", "pth"),
        ("domains:\n  d: {}", "names with values|has no members"),
        ("domains:\n  d: {members: [nothing]}", "nothing"),
        ("domains:\n  d: {members: [a], unavailable: maybe}", "skip or fail"),
        ("domains:\n  d: {members: {a: {k: {}}}}", "text"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(shop: Shop, given: str, said: str) -> None:
    report = shop.refusal(p_yml=given)
    assert any(each in report for each in said.split("|")), report
    assert "p.yml:" in report
