"""The public Python surface: `harken.connect` and what it returns."""
