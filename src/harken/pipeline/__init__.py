"""`harken pipeline`: run one step over the inputs of a database, or one after another, and show the
state of each input."""
