"""Programs of production rules: recognise, act, and again, until no rule is firable."""
