"""The errors a user can cause or repair; the command line prints each as one line and exits with code 2."""


class WiseAleError(Exception):
    """Something the user can put right: the message says what, where, and what to do."""


class ConfigError(WiseAleError):
    """A setting is unknown, malformed or out of range."""


class DataError(WiseAleError):
    """The data cannot be used as it is."""


class RunError(WiseAleError):
    """A run directory cannot be created, read or continued."""


class ModelFileError(WiseAleError):
    """A model or checkpoint is damaged, or not what it claims to be."""


class DivergenceError(WiseAleError):
    """Training produced a value that is not finite; the last good checkpoint stays."""


class ReportedByAnotherRankError(WiseAleError):
    """Another rank reports the error to the user; this one ends with exit code 2 and prints nothing."""
