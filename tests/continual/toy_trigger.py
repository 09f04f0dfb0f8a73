"""A kind of trigger that tests fire by hand: `TRIGGER TOY`."""

import datetime
from dataclasses import dataclass

from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_clauses import Trigger


@dataclass(frozen=True)
class Toy:
    def __str__(self) -> str:
        return "TOY"


class ToyTriggers:
    def __init__(self, relations: frozenset[str] = frozenset()) -> None:
        self.told: list[tuple[str, str]] = []
        self._relations = relations

    def reads(self, text: str, base: int, layout: str) -> Trigger | None:
        return Toy() if text == "TOY" else None

    def owns(self, trigger: Trigger) -> bool:
        return isinstance(trigger, Toy)

    def relations(self, trigger: Trigger) -> frozenset[str]:
        return self._relations

    def explained(self, query: InstalledQuery) -> list[str]:
        return ["triggered by hand"]

    def installed(self, query: InstalledQuery) -> None:
        self.told.append(("installed", query.name))

    def dropped(self, query: InstalledQuery) -> None:
        self.told.append(("dropped", query.name))

    def executed(self, query: InstalledQuery, at: datetime.datetime) -> None:
        self.told.append(("executed", query.name))
