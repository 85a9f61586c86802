"""One clear sentence for everything that can be wrong with what came in."""

import sys
import warnings


class ModelError(ValueError):
    """A robot or world that cannot be simulated as described."""


class InputError(ValueError):
    """An argument of the wrong shape, type or value."""


class SimulationError(ArithmeticError):
    """A motion that diverged: its numbers are not finite any more."""


class UnsupportedWarning(UserWarning):
    """Something in a description that the engine does not act on."""


class UnphysicalWarning(UserWarning):
    """A value that no body can have, simulated because the user asked for it."""


class UnstableWarning(UserWarning):
    """Forces of a model are too stiff for its time step."""


class UnsettledWarning(UserWarning):
    """Contacts were not solved by the sweeps or iterations that they were given."""


class HintWarning(UserWarning):
    """Something that runs, and is probably not what was meant. Its message begins with a name, by which it is silenced."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """A warning that points to the line of the user's code, however many of our own functions are between."""
    package, frame, level = __name__.partition(".")[0], sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
