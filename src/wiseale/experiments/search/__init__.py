"""Search for hyper-parameters: which settings, and the trials, made by Optuna."""
