"""Active rules: conditions monitored by partial differencing, actions run in the check phase."""
