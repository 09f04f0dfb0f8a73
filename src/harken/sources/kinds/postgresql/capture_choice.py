"""How the changes of a table are captured: the best way that the server and the table permit.

The log (`logical`) tells whole transactions and installs nothing in the table. `triggers` change
the table, so they are taken only where they were asked for, or are there already. `poll` always
works.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from harken.sources.kinds.postgresql.delta_catalog import DeltaCatalog
from harken.sources.kinds.postgresql.delta_relation import (
    create_script,
    drop_script,
    refused_for_triggers,
)
from harken.sources.kinds.postgresql.log_catalog import LogCatalog, refused_for_log
from harken.sources.kinds.postgresql.postgres_connection import Place, told
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, read_table
from harken.sources.kinds.postgresql.table_stamps import capture_key

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
        others = refused_for_triggers(table)
    if not refusal:
        whole = "" if capture_key(table, by_log=True) else ", and whole rows, because it has no key"
        return Choice(LOGICAL, f"the log of the server has the changes of {table.title}{whole}")
    instead = "" if others else "; CAPTURE triggers would note its changes"
    return Choice(POLL, f"{table.title} is read again, because {refusal}{instead}")


def trigger_scripts(place: Place, name: str, catalog: DeltaCatalog, source: str) -> tuple[str, str]:
    with told(place), place.connect() as connection:
        delta = catalog.relation(connection, read_table(connection, name), source)
    create = [
        sql.SQL("-- Harken runs this itself when the source starts."),
        catalog.script(delta.schema),
        create_script(delta),
    ]
    drop = [
        sql.SQL("-- Harken runs this itself when the source is dropped."),
        drop_script(delta),
        sql.SQL("-- With the last source of this server:"),
        catalog.drop_script(delta.schema),
    ]
    first, last = (sql.SQL("\n").join(each).as_string(None) + "\n" for each in (create, drop))
    return first, last


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
