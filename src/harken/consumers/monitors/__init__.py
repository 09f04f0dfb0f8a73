"""Monitors: views whose exact changes a client is told."""
