"""Projects: a directory of files that describe what a database should have, and how it gets there.

`project_files` reads them, `plan` compares them with the database, `applying` makes them agree.

Law: applying versions of a project one after another gives the same database as applying the last
of them to an empty one, as far as the project describes it.
"""
