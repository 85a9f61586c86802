"""One clear sentence for everything that can be wrong with what came in."""


class ModelError(ValueError):
    """A robot or world that cannot be simulated as described."""


class InputError(ValueError):
    """An argument of the wrong shape, type or value."""


class SimulationError(ArithmeticError):
    """A motion that left the finite numbers."""


class UnsupportedWarning(UserWarning):
    """Something in a description that the engine does not act on."""


class UnphysicalWarning(UserWarning):
    """A value that no body can have, simulated because the user asked for it."""


class UnstableWarning(UserWarning):
    """Forces of a model are too stiff for its time step."""
