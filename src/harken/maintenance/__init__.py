"""Maintenance: how one node of the network follows changes, chosen by cost."""
