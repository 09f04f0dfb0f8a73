"""Transactions a second of this `harken serve`, beside that of another installation.

    python -m harken.bench.serving_beside PYTHON

PYTHON is the interpreter of the other installation. The figures are lines of JSON.
"""

from __future__ import annotations

import sys

from harken.bench.serving import figures_beside

if __name__ == "__main__":
    for figure in figures_beside(sys.argv[1]):
        print(figure.json_line(), flush=True)
