"""Every registered kind can be imported, and is named as it is registered."""

from harken.sources.kinds import MODULES, outside_kind


def test_every_kind_has_the_name_under_which_it_is_registered() -> None:
    assert {name: outside_kind(name).name for name in MODULES} == {name: name for name in MODULES}
