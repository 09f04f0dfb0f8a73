"""`python -m harken` is the `harken` command."""

from harken.cli import main

if __name__ == "__main__":
    main()
