"""Projects: a directory of files that say what a database is to have, and how it gets there.

`project_files` reads them, `plan` compares them with the database, `applying` makes them agree.

Law: applying versions of a project one after the other gives the database that applying the last
of them to an empty one gives, as far as the project says what it has.
"""
