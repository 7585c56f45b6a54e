"""The one exception that the command line turns into a message and exit code 2."""


class LangevinError(Exception):
    """Something the user can mend. The message says what was expected, what came, and what to do."""


class Diverged(LangevinError):
    """A loss that is no longer a number."""
