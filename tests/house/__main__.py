"""python -m tests.house: write anew what is written from the tree."""

from tests.house.debts import prune

if __name__ == "__main__":
    prune()
