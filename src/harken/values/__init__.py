"""What a value is, the same on every engine: types, encoding, dates, patterns, functions, folds."""
