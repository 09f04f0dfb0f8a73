"""The planner: from a program to one that is cheap to run. Rewrites are listed in `prepare`."""
