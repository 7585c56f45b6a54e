"""The paper beside the package: its recipes' tables, figures, folds and records. `python -m paper`
lists them."""
