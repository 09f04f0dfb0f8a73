"""The consumers of changes: rules act, constraints reject, monitors notify clients."""
