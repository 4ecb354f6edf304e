"""Words about work that takes long: to the logger where anybody listens, to stderr otherwise.

``logging.getLogger("bayes_lepu").setLevel("WARNING")`` makes the library silent.
"""

import logging
import sys

LOGGER = logging.getLogger("bayes_lepu")


def tell(text: str) -> None:
    """Say what is being done, in a line."""
    if LOGGER.level or LOGGER.handlers or logging.root.handlers:
        LOGGER.info(text)
    else:
        print(text, file=sys.stderr, flush=True)
