"""Which tests run in the same process when several share the work (`-n 2 --dist loadgroup`).

Tests that share something which takes long to start (Spark, a database server, a browser) are one
group and run in one process, the group that takes longest first. All other tests stay with those
of their file, so that what a module prepares is prepared once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.nodeid import NodeId

GROUPS = {
    "spark": {"spark"},
    "servers": {"logical_server", "plain_server", "mariadb_server"},
    # Playwright's loop runs until the module ends: nothing may come in between.
    "chromium": {"chromium"},
}
"""Group → the fixtures whose tests it holds; the first group begins first. A test with fixtures of
two groups belongs to the first."""


def group_of(item: pytest.Item) -> str | None:
    marked = item.get_closest_marker("xdist_group")  # its fixture is asked for by its value
    if marked is not None:
        return str(marked.args[0])
    fixtures = set(getattr(item, "fixturenames", ()))
    return next((group for group, shared in GROUPS.items() if shared & fixtures), None)


def pytest_configure(config: pytest.Config) -> None:
    """Groups begin in the order in which they were collected, not the one with most tests first."""
    config.option.loadscopereorder = False


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    order = [*GROUPS, None]
    groups = {item: group_of(item) for item in items}
    items.sort(key=lambda item: order.index(groups[item]))
    for item, group in groups.items():
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    yield
    for item, group in groups.items():
        if group is not None and getattr(item.config.option, "loadgroup", False):
            _name_the_group(item, group)


def _name_the_group(item: pytest.Item, group: str) -> None:
    """xdist tells the process that distributes the work by a suffix of the node's id. Its version
    3.8 writes that where pytest 9.2 no longer reads it, and distributes as if there were no groups
    (pytest-xdist issue 1386)."""
    suffix = f"@{group}"
    if not item.nodeid.endswith(suffix):
        identity: NodeId = item.id  # type: ignore[attr-defined]
        item._id = type(identity).parse(f"{item.nodeid}{suffix}")  # type: ignore[attr-defined]
    assert item.nodeid.endswith(suffix), "pytest keeps the ids of nodes somewhere else"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups, and else files; nothing where another distribution was asked for."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class GroupsAndFiles(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            scope = str(super()._split_scope(nodeid))
            return scope.split("::")[0] if scope == nodeid else scope

    return GroupsAndFiles(config, log)
