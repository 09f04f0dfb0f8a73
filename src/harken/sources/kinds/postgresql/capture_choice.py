"""How the changes of a table are captured: the best way that the server and the table permit.

The log (`logical`) tells whole transactions and installs nothing in the table. `triggers` change
the table, so they are taken only where they were asked for, or are there already. `poll` always
works.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from harken.sources.kinds.postgresql.log_catalog import LogCatalog, log_key, refused_for_log
from harken.sources.kinds.postgresql.postgres_connection import Place, told
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, read_table

LOGICAL, TRIGGERS, POLL = "logical", "triggers", "poll"


@dataclass(frozen=True, slots=True)
class Choice:
    capture: str
    why: str


def chosen(place: Place, name: str, log: LogCatalog) -> Choice:
    """Connects once."""
    with told(place), place.connect() as connection:
        table = read_table(connection, name)
        refusal = refused_for_log(table) or log.refusal(connection)
    if not refusal:
        whole = "" if log_key(table) else ", and whole rows, because it has no key"
        return Choice(LOGICAL, f"the log of the server has the changes of {table.title}{whole}")
    return Choice(POLL, f"{table.title} is read again, because {refusal}")


def log_scripts(place: Place, name: str, log: LogCatalog) -> tuple[str, str]:
    with told(place), place.connect() as connection:
        table = read_table(connection, name)
    return _create_script(table, log.name), _drop_script(log.name)


def _create_script(table: OutsideTable, name: str) -> str:
    lines = ["-- Harken runs these itself when the source starts."]
    if table.identity not in ("f",) and not table.identity_key:
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL;").format(table.place)
        lines = ["-- The table has no primary key, so this must be run first:"]
        lines += [statement.as_string(None), "-- Harken runs the rest itself."]
    text = sql.SQL(
        "CREATE PUBLICATION {name};\n"
        "SELECT pg_create_logical_replication_slot({text}, 'pgoutput');\n"
        "ALTER PUBLICATION {name} ADD TABLE ONLY {table};\n"
    ).format(name=sql.Identifier(name), text=sql.Literal(name), table=table.place)
    return "\n".join([*lines, text.as_string(None)])


def _drop_script(name: str) -> str:
    text = sql.SQL(
        "-- The publication and the slot serve all sources of this server.\n"
        "SELECT pg_drop_replication_slot({text});\n"
        "DROP PUBLICATION IF EXISTS {name};\n"
    ).format(name=sql.Identifier(name), text=sql.Literal(name))
    return text.as_string(None)
