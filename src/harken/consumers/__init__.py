"""Those who want the changes of a view: rules act, constraints refuse, monitors tell."""
