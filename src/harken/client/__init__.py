"""A client of the service: the API over HTTP, and copies of views that stay up to date."""
