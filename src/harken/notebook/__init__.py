"""Live views in a notebook: a table and a chart that change with the data."""

from harken.notebook.live_view import LiveView, live

__all__ = ["LiveView", "live"]
