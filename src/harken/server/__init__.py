"""The service: views, their snapshots and their changes over HTTP."""
