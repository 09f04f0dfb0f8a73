"""SQLAlchemy over Harken: `create_engine("harken:///shop.db")`."""

from harken.dialect.sqlalchemy_dialect import HarkenDialect

__all__ = ["HarkenDialect"]
