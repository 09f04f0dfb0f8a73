"""What makes an outside source a relation: its mirror, its state, and how its changes are taken
in."""
