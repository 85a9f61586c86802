"""What only the mass matrix shows: joints that move nothing, directions in which nothing resists, forces too stiff for the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import FIXED, POSITION, REVOLUTE, VELOCITY, Topology
from .elimination import Elimination, largest_eigenpair
from .errors import ModelError, UnstableWarning, warn_caller
from .parts import WorldParts


def check_inertias(parts: WorldParts, topology: Topology, params: dict[str, np.ndarray], integrator: str) -> None:
    """What only the mass matrix shows, where the world starts: directions in which nothing resists, and joint damping or
    servos that are too stiff for the time step."""
    tree, stiffness = topology.tree, _stiffness(topology.tree, params, integrator)
    is_followed = integrator in ("semi_implicit", "implicit_damping")  # the two that take robots into contact
    if not any(root >= 0 for root in tree["tree_root"]) and not (is_followed and stiffness.any()):
        return
    inertias = _body_inertias(parts, tree, params)
    for number, root in enumerate(tree["tree_root"]):
        members = tree["tree_body"][tree["tree_first"][number] : tree["tree_first"][number + 1]]
        dofs = np.arange(tree["tree_dof"][number], tree["tree_dof"][number + 1])
        is_light = root >= 0 and np.linalg.matrix_rank(inertias[root]) < 6
        is_stiff = is_followed and stiffness[dofs].any()
        if not is_light and not is_stiff:
            continue
        mass = Elimination(members, tree, inertias, parts.poses, params)
        if is_light:
            _check_root(mass, next(name for (name, _, f) in parts.links if tree["frame_body"][f] == root))
        if is_stiff:
            _warn_of_stiffness(
                mass, stiffness[dofs], topology.dof_names[dofs[0] : dofs[-1] + 1], params["world.dt"], integrator
            )


def _check_root(mass: Elimination, name: str) -> None:
    """A free root without mass of its own moves with nothing in the directions that its joints leave open."""
    if mass.least_share < 1e-12:
        raise ModelError(
            f'the free link "{name}" has no mass or inertia of its own, and its joints leave it a direction in which nothing '
            'resists: it would be accelerated without limit; give it mass and inertia, or base="fixed"'
        )


def _stiffness(tree: Mapping[str, Any], params: dict[str, np.ndarray], integrator: str) -> np.ndarray:
    """2 dt c + dt^2 k of every degree of freedom that a step takes from its beginning, of dampers, springs and servos: a
    semi-implicit step of one joint of inertia m is stable below 4 m."""
    dt, total = float(params["world.dt"]), np.zeros(tree["n_dofs"])
    for frame, dof, n_dof in zip(tree["frame"], tree["dof"], tree["n_dof"], strict=True):
        c = 0.0 if integrator == "implicit_damping" else params["joint.damping"][frame]
        total[dof : dof + n_dof] += 2.0 * dt * c + dt * dt * params["joint.stiffness"][frame]
    for k, (kind, dof) in enumerate(zip(tree["actuator_kind"], tree["actuator_dof"], strict=True)):
        gain, gear, (_, per_q, per_rate) = (params[f"actuator.{w}"][k] for w in ("gain", "gear", "bias"))
        c = params["actuator.damping"][k] - per_rate + (gain if kind == VELOCITY else 0.0)
        total[dof] += gear**2 * (2.0 * dt * c + dt * dt * ((gain if kind == POSITION else 0.0) - per_q))
    return np.maximum(total, 0.0)


def _warn_of_stiffness(
    mass: Elimination, stiffness: np.ndarray, names: tuple[str, ...], dt: Any, integrator: str
) -> None:
    """Largest eigenvalue of M^-1 (2 dt C + dt^2 K) against 4."""
    root = np.sqrt(stiffness)
    value, vector = largest_eigenpair(lambda x: root * mass.solve(root * x), len(root), mass.n_bodies)
    if value > 4.0:
        joint = names[int(np.argmax(np.abs(vector)))]
        remedy = "a smaller dt, or armature" + (
            ', or integrator="implicit_damping"' if integrator == "semi_implicit" else ""
        )
        warn_caller(
            f'dampers, springs or servos at joint "{joint}" are {value / 4.0:.3g} times stiffer than steps of {float(dt):g} s '
            f"can follow: its rate will grow without limit; take {remedy}",
            UnstableWarning,
        )


def _body_inertias(parts: WorldParts, tree: Mapping[str, Any], params: dict[str, np.ndarray]) -> np.ndarray:
    """(n + 1, 6, 6), of [angular, linear] motion of each body about the world's origin."""
    frames = [frame for _, _, frame in parts.links]
    R, p = (np.array([parts.poses[f][k] for f in frames]) for k in (0, 1))
    mass, at = params["link.mass"], p + np.einsum("nij,nj->ni", R, params["link.com"])
    own = params["link.inertia"][:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    cross = np.cross(np.eye(3), at[:, None])
    whole = np.zeros((len(frames), 6, 6))
    whole[:, :3, :3] = R @ own @ np.swapaxes(R, 1, 2) - mass[:, None, None] * cross @ cross
    whole[:, :3, 3:], whole[:, 3:, :3] = mass[:, None, None] * cross, -mass[:, None, None] * cross
    whole[:, 3:, 3:] = mass[:, None, None] * np.eye(3)
    found = np.zeros((tree["n_bodies"] + 1, 6, 6))
    np.add.at(found, np.array(tree["link_body"]), whole)
    return found


def check_moving_mass(parts: WorldParts, topology: Topology, params: dict[str, np.ndarray]) -> None:
    """Every moving joint must carry inertia, or its acceleration would be infinite."""
    tree = topology.tree
    n = tree["n_bodies"]
    heavy, kinds = np.zeros(n + 1, dtype=bool), [*tree["kind"], FIXED]
    for j, (_, link, _) in enumerate(parts.links):
        body = tree["link_body"][j]
        heavy[body] |= link.mass > 0 or (kinds[body] == REVOLUTE and any(link.inertia))
    for b in range(n - 1, -1, -1):
        if heavy[b] or params["joint.armature"][tree["frame"][b]] > 0:
            heavy[tree["parent"][b]] |= heavy[b]
            continue
        frame = tree["frame"][b]
        carried = [name for (name, _, f) in parts.links if tree["frame_body"][f] == b]
        what = f'link "{carried[0]}"' if carried else "what it carries"
        raise ModelError(
            f'joint "{topology.joint_names[frame]}" moves {what}, which has no mass and carries none: it would be '
            "accelerated without limit; give the link a mass, make the joint fixed, or give it armature"
        )
