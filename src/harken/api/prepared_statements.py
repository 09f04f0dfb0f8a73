"""`db.prepare(text)`: a text of SQL that is run many times, with other values each time.

Law: `statement.execute(values)` is `db.sql(text, values)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.database.results import Results
from harken.errors import HarkenError
from harken.lang.sql.parameters import name_of, parameters_of
from harken.lang.sql.parser import statements


class PreparedStatement:
    def __init__(self, text: str, run: Callable[[str, Any], Results]) -> None:
        self.text = text
        try:
            parsed = statements(text)
        except HarkenError as error:
            error.locate(text, None)
            raise
        nodes = [node for each in parsed for node in parameters_of(each)]
        self.parameters = tuple(map(name_of, nodes))
        """The names of its parameters in the order of the text; that of `?` is empty."""
        self._run = run

    def execute(self, values: Any = None) -> Results:
        """Run it with a sequence or a mapping of values, or with a list of tuples or mappings once
        for each, in one transaction."""
        return self._run(self.text, values)

    def __call__(self, *values: Any, **named: Any) -> Results:
        """Run it with these values: `statement(5, "Oslo")` or `statement(id=5)`."""
        return self.execute(named or (values if values else None))

    def __repr__(self) -> str:
        return f"<prepared {self.text!r}>"
