"""The mass matrix at the initial pose, which MJCF's damping ratios refer to."""

from __future__ import annotations

import numpy as np

from ...model.description import Description, Joint
from .pose import Pose, about, compose, matrix


def initial_mass_matrix(robot: Description) -> tuple[np.ndarray, dict[str, int]]:
    """(nv, nv), and the first degree of freedom of each joint. Links come parents first."""
    joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        joints[joint.child].append(joint)
    counts = {"fixed": 0, "revolute": 1, "prismatic": 1, "spherical": 3, "free": 6}
    first, n = {}, 0
    for name in robot.links:
        for joint in joints[name]:
            first[joint.name], n = n, n + counts[joint.kind]
    M = np.zeros((n, n))
    poses: dict[str | None, Pose] = {None: ((0.0,) * 3, (1.0, 0.0, 0.0, 0.0))}  # type: ignore[dict-item]
    columns: dict[str | None, list[tuple[int, np.ndarray, np.ndarray]]] = {None: []}
    for name, link in robot.links.items():
        parent = joints[name][0].parent
        pose, axes = poses[parent], list(columns[parent])
        for joint in joints[name]:
            pose, own = _moved(pose, joint)
            axes += [(first[joint.name] + k, w, v) for k, (w, v) in enumerate(own)]
            for k in range(len(own)):
                M[first[joint.name] + k, first[joint.name] + k] += joint.armature
        poses[name], columns[name] = pose, axes
        if link.mass or any(link.inertia):
            _add(M, link, pose, axes)
    return M, first


def _moved(pose: Pose, joint: Joint) -> tuple[Pose, list[tuple[np.ndarray, np.ndarray]]]:
    """The frame after a joint at its initial position, and its axes: angular, and linear at the world's origin."""
    pose = compose(pose, (joint.position, joint.orientation))  # type: ignore[arg-type]
    turn = np.array(matrix(pose[1]))
    at = np.array(pose[0]) + turn @ np.array(joint.anchor)
    axis, zero = turn @ np.array(joint.axis), np.zeros(3)
    start = joint.initial or 0.0
    if joint.kind == "prismatic":
        step = tuple(float(start * a) for a in joint.axis)  # type: ignore[operator]
        return compose(pose, (step, (1.0, 0.0, 0.0, 0.0))), [(zero, axis)]  # type: ignore[arg-type]
    if joint.kind == "revolute":
        spin = about(joint.axis, start)  # type: ignore[arg-type]
        back = np.array(joint.anchor) - np.array(matrix(spin)) @ np.array(joint.anchor)
        return compose(pose, (tuple(back), spin)), [(axis, np.cross(at, axis))]  # type: ignore[arg-type]
    turns = [(w, np.cross(at, w)) for w in turn.T]
    if joint.kind == "spherical":
        return pose, turns
    return pose, ([(zero, e) for e in np.eye(3)] + turns if joint.kind == "free" else [])


def _add(M: np.ndarray, link, pose: Pose, axes) -> None:
    if not axes:
        return
    turn = np.array(matrix(pose[1]))
    xx, xy, xz, yy, yz, zz = link.inertia
    I = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    com = np.array(pose[0]) + turn @ np.array(link.com)
    rows = [k for k, _, _ in axes]
    W = np.array([w for _, w, _ in axes])
    V = np.array([v for _, _, v in axes]) + np.cross(W, com)
    M[np.ix_(rows, rows)] += W @ I @ W.T + link.mass * V @ V.T
