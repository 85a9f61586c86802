"""What only the mass matrix shows: joints that move nothing, directions in which nothing resists, forces too stiff for the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import FREE, POSITION, PRISMATIC, REVOLUTE, SPHERICAL, VELOCITY, Topology
from .description import Link
from .errors import ModelError, UnstableWarning, warn_caller
from .listing import Listing
from .loops import initial_poses


def check_inertias(listing: Listing, topology: Topology, params: dict[str, np.ndarray], integrator: str) -> None:
    """What only the mass matrix shows, where the world starts: directions in which nothing resists, and joint damping or
    servos that are too stiff for the time step."""
    tree, poses = topology.tree, initial_poses(listing.frames)
    inertias = np.zeros((tree["n_bodies"] + 1, 6, 6))
    for j, (_, link, frame) in enumerate(listing.links):
        inertias[tree["link_body"][j]] += _inertia_about_origin(link, *poses[frame])
    stiffness = _stiffness(tree, params, integrator)
    for number, root in enumerate(tree["tree_root"]):
        members = [b for b in range(tree["n_bodies"]) if tree["body_tree"][b] == number]
        dofs = np.concatenate([np.arange(tree["dof"][b], tree["dof"][b] + tree["n_dof"][b]) for b in members])
        is_light = root >= 0 and np.linalg.matrix_rank(inertias[root]) < 6
        if not is_light and not stiffness[dofs].any():
            continue
        M = _mass_matrix(members, tree, inertias, poses, params)
        if is_light:
            _check_root(M, next(name for (name, _, f) in listing.links if tree["frame_body"][f] == root))
        _warn_of_stiffness(M, stiffness[dofs], [topology.dof_names[d] for d in dofs], params["world.dt"], integrator)


def _check_root(M: np.ndarray, name: str) -> None:
    """A free root without mass of its own moves with nothing in the directions that its joints leave open."""
    scale = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    if np.linalg.eigvalsh(M / np.outer(scale, scale))[0] < 1e-12:
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


def _warn_of_stiffness(M: np.ndarray, stiffness: np.ndarray, names: list[str], dt: Any, integrator: str) -> None:
    """Largest eigenvalue of M^-1 (2 dt C + dt^2 K) against 4. Only the two integrators that take robots into contact."""
    if integrator not in ("semi_implicit", "implicit_damping") or not stiffness.any():
        return
    root = np.sqrt(stiffness)
    values, vectors = np.linalg.eigh(root[:, None] * np.linalg.pinv(M, hermitian=True) * root)
    if values[-1] > 4.0:
        joint = names[int(np.argmax(np.abs(vectors[:, -1])))]
        remedy = "a smaller dt, or armature" + (
            ', or integrator="implicit_damping"' if integrator == "semi_implicit" else ""
        )
        warn_caller(
            f'dampers, springs or servos at joint "{joint}" are {values[-1] / 4.0:.3g} times stiffer than steps of {float(dt):g} s '
            f"can follow: its rate will grow without limit; take {remedy}",
            UnstableWarning,
        )


def _inertia_about_origin(link: Link, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(6, 6), of [angular, linear] motion about the world's origin."""
    xx, xy, xz, yy, yz, zz = link.inertia
    at = p + R @ np.asarray(link.com, dtype=np.float64)
    cross = np.cross(np.eye(3), at)
    turning = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T - link.mass * cross @ cross
    return np.block([[turning, link.mass * cross], [-link.mass * cross, link.mass * np.eye(3)]])


def _mass_matrix(
    members: list[int], tree: Mapping[str, Any], inertias: np.ndarray, poses: list, params: dict
) -> np.ndarray:
    """Of one tree; a free root moves about the world's origin."""
    axes: dict[int, np.ndarray] = {}
    for b in members:
        R, p = poses[tree["frame"][b]]
        along = R @ params["joint.axis"][tree["frame"][b]]
        columns = {
            REVOLUTE: [(*along, *np.cross(p, along))],
            PRISMATIC: [(0.0, 0.0, 0.0, *along)],
            SPHERICAL: [(*axis, *np.cross(p, axis)) for axis in np.eye(3)],
            FREE: np.eye(6),
        }
        axes[b] = np.array(columns[tree["kind"][b]]).T
    starts = dict(zip(members, np.cumsum([0] + [axes[b].shape[1] for b in members]), strict=False))
    M = np.zeros((sum(a.shape[1] for a in axes.values()),) * 2)
    for b in members:
        J, at = np.zeros((6, len(M))), b
        while at in axes:
            J[:, starts[at] : starts[at] + axes[at].shape[1]] = axes[at]
            at = tree["parent"][at]
        M += J.T @ inertias[b] @ J
        own = slice(starts[b], starts[b] + axes[b].shape[1])
        M[own, own] += params["joint.armature"][tree["frame"][b]] * np.eye(axes[b].shape[1])
    return M


def check_moving_mass(listing: Listing, topology: Topology, params: dict[str, np.ndarray]) -> None:
    """Every moving joint must carry inertia, or its acceleration would be infinite."""
    tree = topology.tree
    n = tree["n_bodies"]
    heavy = np.zeros(n + 1, dtype=bool)
    for j, (_, link, _) in enumerate(listing.links):
        heavy[tree["link_body"][j]] |= (
            link.mass > 0 or (tree["kind"] + [0])[tree["link_body"][j]] == REVOLUTE and any(link.inertia)
        )
    for b in range(n - 1, -1, -1):
        if heavy[b] or params["joint.armature"][tree["frame"][b]] > 0:
            heavy[tree["parent"][b]] |= heavy[b]
            continue
        frame = tree["frame"][b]
        carried = [name for (name, _, f) in listing.links if tree["frame_body"][f] == b]
        what = f'link "{carried[0]}"' if carried else "what it carries"
        raise ModelError(
            f'joint "{topology.joint_names[frame]}" moves {what}, which has no mass and carries none: it would be '
            "accelerated without limit; give the link a mass, make the joint fixed, or give it armature"
        )
