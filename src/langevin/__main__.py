"""`python -m langevin`: the command, for processes that know their interpreter but not their PATH."""

from .cli import main

if __name__ == "__main__":
    main()
