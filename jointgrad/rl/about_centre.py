"""Forces, velocities and inertias of links about the centre of mass of the whole robot, in world axes.

MuJoCo keeps these as cfrc_ext, cvel and cinert, and gymnasium's tasks show them to a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..model.arrays import Model
from .arrays import Array, like, namespace

POSES = ("link.position", "link.rotation")
LOADS = ("contact.force", "contact.torque")


def link_centres(model: Model, outputs: Mapping[str, Array]) -> Array:
    """Centres of mass of the links, (batch, n_links, 3)."""
    place, turn = outputs["link.position"], outputs["link.rotation"]
    return place + (turn @ like(place, model.params["link.com"])[..., None])[..., 0]


def centre(model: Model, outputs: Mapping[str, Array]) -> Array:
    """Centre of mass of all links together, (batch, 3)."""
    return _mean(model, link_centres(model, outputs))


def arms(model: Model, outputs: Mapping[str, Array]) -> Array:
    """From the centre of the whole to the centres of the links, (batch, n_links, 3)."""
    centres = link_centres(model, outputs)
    return centres - _mean(model, centres)[..., None, :]


def _mean(model: Model, centres: Array) -> Array:
    share = model.params["link.mass"] / model.params["link.mass"].sum()
    return (like(centres, share)[:, None] * centres).sum(-2)


def wrenches(model: Model, outputs: Mapping[str, Array]) -> Array:
    """Torque and force of contact on each link, (batch, n_links, 6)."""
    force, torque = outputs["contact.force"], outputs["contact.torque"]
    xp = namespace(force)
    return xp.concat((torque + xp.linalg.cross(arms(model, outputs), force), force), axis=-1)


def velocities(model: Model, outputs: Mapping[str, Array]) -> Array:
    """Angular velocity of each link, and the velocity it would have at the centre of the whole, (batch, n_links, 6)."""
    linear, angular = outputs["link.velocity"][..., :3], outputs["link.velocity"][..., 3:]
    xp, arm = namespace(linear), centre(model, outputs)[..., None, :] - outputs["link.position"]
    return xp.concat((angular, linear + xp.linalg.cross(angular, arm)), axis=-1)


def inertias(model: Model, outputs: Mapping[str, Array]) -> Array:
    """Of each link about the centre of the whole: xx yy zz xy xz yz, mass times arm, mass; (batch, n_links, 10)."""
    turn, arm = outputs["link.rotation"], arms(model, outputs)
    xp, mass = namespace(turn), like(turn, model.params["link.mass"])[:, None]
    own = turn @ like(turn, _matrices(model.params["link.inertia"])) @ xp.swapaxes(turn, -1, -2)
    square = like(turn, np.eye(3)) * (arm * arm).sum(-1)[..., None, None]
    whole = own + mass[..., None] * (square - arm[..., :, None] * arm[..., None, :])
    entries = [whole[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    masses = xp.broadcast_to(mass, (*arm.shape[:-1], 1))
    return xp.concat((xp.stack(entries, axis=-1), mass * arm, masses), axis=-1)


def _matrices(six: np.ndarray) -> np.ndarray:
    """From xx xy xz yy yz zz, (n, 6), to (n, 3, 3)."""
    return six[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
