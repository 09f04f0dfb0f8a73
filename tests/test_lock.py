"""The lock fits pyproject.toml and names no host: where to download from, the machine decides."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_every_dependency_is_locked_at_a_version_it_allows() -> None:
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE))
    wanted = PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["dev"]
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    wanted += [text for extra in extras for text in extra if not text.startswith("harken[")]
    stale = [text for text in wanted if not satisfies(locked, Requirement(text))]
    assert not stale, f"run script/lock: {stale}"


def satisfies(locked: dict[str, str], requirement: Requirement) -> bool:
    name = canonicalize_name(requirement.name)
    return name in locked and requirement.specifier.contains(locked[name], prereleases=True)


def test_the_lock_names_no_host() -> None:
    assert "://" not in LOCK
