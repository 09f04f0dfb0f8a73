"""The tables of a database, for SQLAlchemy's inspector.

Law: a table created from what is reflected here has the same columns, keys and constraints.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import default, reflection

import harken
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_digits,
    is_decimal,
)

SQL_TYPES: dict[Type, Any] = {
    INTEGER: types.BIGINT(),
    NUMBER: types.DOUBLE(),
    TEXT: types.TEXT(),
    BOOLEAN: types.BOOLEAN(),
    DATE: types.DATE(),
    TIMESTAMP: types.TIMESTAMP(timezone=True),
}


def sql_type(type_: Type) -> Any:
    if is_decimal(type_):
        return types.DECIMAL(*decimal_digits(type_))
    return SQL_TYPES.get(type_.or_null(False), types.NullType())


class HarkenReflection(default.DefaultDialect):
    """Harken has no schemas, no user-defined indexes, no comments and no names of constraints."""

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        return []

    @reflection.cache
    def get_table_names(self, connection: Any, schema: Any = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, "table", "source")

    @reflection.cache
    def get_view_names(self, connection: Any, schema: Any = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, "view", "domain")

    @reflection.cache
    def get_materialized_view_names(
        self, connection: Any, schema: Any = None, **kw: Any
    ) -> list[str]:
        return self._names(connection, schema, "materialized view")

    def get_temp_table_names(self, connection: Any, schema: Any = None, **kw: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: Any, schema: Any = None, **kw: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: Any, schema: Any = None, **kw: Any) -> list[str]:
        return []

    def has_table(self, connection: Any, table_name: str, schema: Any = None, **kw: Any) -> bool:
        try:
            self._described(connection, table_name, schema)
        except exc.NoSuchTableError:
            return False
        return True

    def has_sequence(
        self, connection: Any, sequence_name: str, schema: Any = None, **kw: Any
    ) -> bool:
        return False

    def has_index(
        self, connection: Any, table_name: str, index_name: str, schema: Any = None, **kw: Any
    ) -> bool:
        return False

    def get_columns(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> list[Any]:
        described = self._described(connection, table_name, schema)
        return [
            {
                "name": column.name,
                "type": sql_type(column.type),
                "nullable": column.type.nullable,
                "default": described.defaults.get(column.name),
                "autoincrement": False,
            }
            for column in described.columns
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> Any:
        described = self._described(connection, table_name, schema)
        return {"constrained_columns": list(described.primary_key), "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> list[Any]:
        described = self._described(connection, table_name, schema)
        return [
            {
                "name": None,
                "constrained_columns": list(each.columns),
                "referred_schema": None,
                "referred_table": each.table,
                "referred_columns": list(each.referred),
                "options": {},
            }
            for each in described.foreign_keys
        ]

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> list[Any]:
        described = self._described(connection, table_name, schema)
        return [{"name": None, "column_names": list(each)} for each in described.unique]

    def get_check_constraints(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> list[Any]:
        described = self._described(connection, table_name, schema)
        return [{"name": None, "sqltext": each[1:-1]} for each in described.checks]

    def get_indexes(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> list[Any]:
        """None: Harken creates and drops indexes by itself, as queries need them."""
        self._described(connection, table_name, schema)
        return []

    def get_view_definition(
        self, connection: Any, view_name: str, schema: Any = None, **kw: Any
    ) -> str:
        return str(self._described(connection, view_name, schema).text)

    def get_table_comment(
        self, connection: Any, table_name: str, schema: Any = None, **kw: Any
    ) -> Any:
        self._described(connection, table_name, schema)
        return {"text": None}

    def _names(self, connection: Any, schema: Any, *kinds: str) -> list[str]:
        rows = [] if schema else connection.exec_driver_sql("SHOW TABLES").all()
        return [name for name, its_kind in rows if its_kind in kinds]

    def _described(self, connection: Any, name: str, schema: Any) -> Any:
        if schema:
            raise exc.NoSuchTableError(f"{schema}.{name}")
        database = connection.connection.dbapi_connection.database
        try:
            return database.describe_table(name)
        except harken.NameFault as error:
            raise exc.NoSuchTableError(name) from error
