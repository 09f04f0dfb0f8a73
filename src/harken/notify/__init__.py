"""Delivers the messages of the outbox (`database.messages`) through channels."""
