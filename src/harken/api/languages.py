"""The languages that Harken speaks: each registers itself when its module is imported."""

import harken.statements.amosql.language
import harken.statements.datalog.language
import harken.statements.sql.language  # noqa: F401
