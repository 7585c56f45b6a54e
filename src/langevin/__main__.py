"""`python -m langevin`: the command, for processes that know no PATH."""

from .cli import main

if __name__ == "__main__":
    main()
