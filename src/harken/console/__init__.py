"""The web console: pages that `harken serve` answers at `/`, for people.

A page is a function that reads what it shows in a session (`Page` says what every page has) and a
template. Nothing is computed here that the database does not answer; what changes while a page is
open comes from the same streams that programs use.
"""
