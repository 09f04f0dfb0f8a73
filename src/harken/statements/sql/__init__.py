"""SQL statements: tables and views are functions of the catalog."""
