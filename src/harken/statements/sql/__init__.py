"""SQL over a database: its tables and views are the functions of the catalog."""
