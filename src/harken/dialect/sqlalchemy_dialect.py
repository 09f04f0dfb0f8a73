"""The dialect: what SQLAlchemy must know about Harken, over `harken.dbapi`.

Law: SQLAlchemy's core queries, tables and reflection mean what they mean elsewhere; what Harken
does not support is an error.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import URL, pool

from harken.dialect.compilers import (
    HarkenCompiler,
    HarkenDDLCompiler,
    HarkenIdentifiers,
    HarkenTypeCompiler,
)
from harken.dialect.reflection import HarkenReflection


class HarkenDialect(HarkenReflection):
    name = "harken"
    driver = "dbapi"
    default_paramstyle = "qmark"
    statement_compiler = HarkenCompiler
    ddl_compiler = HarkenDDLCompiler
    type_compiler_cls = HarkenTypeCompiler
    preparer = HarkenIdentifiers  # type: ignore[assignment]

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_default_values = True
    supports_default_metavalue = True
    supports_multivalues_insert = True
    supports_sequences = False
    supports_alter = True
    supports_comments = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    tuple_in_values = False
    max_identifier_length = 9999
    default_schema_name = None
    default_isolation_level = "SERIALIZABLE"
    requires_name_normalize = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import harken.dbapi

        return harken.dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """A database in memory belongs to one connection, which all must share."""
        return pool.QueuePool if url.database else pool.SingletonThreadPool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        options: dict[str, Any] = dict(url.query)
        if "timeout" in options:
            options["timeout"] = float(options["timeout"])
        if "read_only" in options:
            options["read_only"] = str(options["read_only"]).lower() in ("1", "true", "yes")
        return [url.database or ":memory:"], options

    def initialize(self, connection: Any) -> None:
        """There is no server to query."""

    def get_isolation_level_values(self, dbapi_connection: Any) -> Any:
        return ["SERIALIZABLE", "AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_connection: Any) -> Any:
        return "SERIALIZABLE"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "SERIALIZABLE"

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def do_savepoint(self, connection: Any, name: str) -> None:
        raise NotImplementedError("Harken's SQL has no savepoints: use a transaction for each part")

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return getattr(e, "code", None) == "closed"
