"""The paper's tables and figures: what each needs, what is there, what is missing, ours beside theirs."""
