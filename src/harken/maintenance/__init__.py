"""Maintenance: how one node of the network keeps up with changes, chosen by cost."""
