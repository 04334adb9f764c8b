"""The errors a user can act on: each message says what was expected, what came instead and what to do."""


class MacvoError(Exception):
    """Base of every error macvo_ros raises on purpose; the command line prints it in one line and exits with 2."""


class CalibrationError(MacvoError):
    """The camera calibration is impossible or does not belong to these images."""


class ConfigError(MacvoError):
    """A configuration key or value that is not allowed."""


class SequenceError(MacvoError):
    """A dataset, folder or bag that cannot be read as what it claims to be."""


class ImageError(MacvoError):
    """An image that cannot be used: wrong size, type or encoding."""


class WeightsError(MacvoError):
    """A network checkpoint that is not what the matcher needs."""
