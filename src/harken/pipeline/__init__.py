"""`harken pipeline`: steps over the inputs of a database, one or one after the other, and where
each input stands."""
