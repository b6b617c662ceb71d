"""The paper's experiments, claims, figures and pages; imports the library's public surface only."""
