"""Monitors: views whose exact changes a client receives."""
