"""How hard hypothesis searches: `HARKEN_NIGHTLY=1` makes it search long."""

import os

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=5_000)
settings.load_profile("nightly" if os.environ.get("HARKEN_NIGHTLY") else "default")
