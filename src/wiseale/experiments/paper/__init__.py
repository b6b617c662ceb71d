"""The paper's experiments and the judgement of its claims."""
