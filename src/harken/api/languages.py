"""Imports the languages, each of which registers itself."""

import harken.statements.amosql.language
import harken.statements.datalog.language
import harken.statements.sql.language  # noqa: F401
