"""python -m tests.house: write anew what is written from the tree."""

from tests.house.debts import prune
from tests.house.tree import write_trees

if __name__ == "__main__":
    prune()
    write_trees()
