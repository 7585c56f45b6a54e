"""What people would pick instead of langevin, measured beside it: same splits, same cost.

python -m benchmarks.alternatives texts|sentences|tables [--sets …] [--arms …] [--seeds 0,1]

Every (set, seed, arm) is one record in results/alternatives-*.json; those that are there are left
alone, so that a run goes on where it was. `tables` makes docs/alternatives.md from the records.
"""
