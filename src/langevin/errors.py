"""What the command line turns into a message and exit code 2, and what stops a run."""


class LangevinError(Exception):
    """Something the user can mend. The message says what was expected, what came, and what to
    do."""


class Diverged(LangevinError):
    """A loss that is no longer a number."""


class Interrupted(Exception):
    """The user asked to stop; a checkpoint was written."""
