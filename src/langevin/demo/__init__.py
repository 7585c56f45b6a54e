"""Three minutes that show what the samples are for, on texts that come with langevin.

The texts: War and Peace (`data/`); `declaration.fr.txt`, the Universal Declaration of Human Rights
in French (resolution 217 A of the United Nations, in nobody's copyright); `definitions.csv.xz`,
definitions of WordNet 3.1, whose licence lies beside it.
"""
