"""Legs of three hinges in closed form: where a foot is, which angles put it there, and how it moves with them.

A leg rolls about x at the hip, then pitches about y twice, at thigh and knee; all axes at rest and the places of the joints are
read off the model, so that one formula serves every such robot. Turning about y is a product of complex numbers z + i x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...engine.looks.inspect import Inspection, inspect
from ...model.arrays import Model, State
from ...model.errors import InputError


@dataclass(frozen=True)
class Legs:
    """Four legs, in the order of the model's actuators. Vectors are in the axes of the body.

    hip: from the body's origin to the hip's axis (4, 3); thigh, shank and foot lead from joint to joint and to the centre of the
    foot, all angles zero (4, 3); sign: which way each joint turns (4, 3); bend: the side to which knees bend (4,). masses (4, 3)
    and centres (4, 3, 3) are of what each joint carries up to the next: centres from the joint, all angles zero.
    """

    hip: np.ndarray
    thigh: np.ndarray
    shank: np.ndarray
    foot: np.ndarray
    sign: np.ndarray
    bend: np.ndarray
    masses: np.ndarray
    centres: np.ndarray

    def positions(self, angles: np.ndarray) -> np.ndarray:
        """Of the feet, (4, 3), where the joints are at angles (4, 3)."""
        a = self.sign * angles
        below = self.thigh + _pitched(a[:, 1], self.shank + _pitched(a[:, 2], self.foot))
        return self.hip + (_roll(a[:, 0]) @ below[..., None])[..., 0]

    def jacobians(self, angles: np.ndarray) -> np.ndarray:
        """Of the feet's positions by the joints' angles, (4, 3, 3): [leg, coordinate, joint]."""
        return self.moves(angles)[0]

    def moves(self, angles: np.ndarray) -> np.ndarray:
        """Jacobians of the feet and of the three centres of mass of each leg, (4, 4, 3, 3): [point, leg, coordinate, joint]."""
        a = self.sign * angles
        lower = _pitched(a[:, 1] + a[:, 2], self._ways[2])
        upper = _pitched(a[:, 1], self._ways[1]) + lower
        below = self._ways[0] + upper
        out = np.zeros((4, 4, 3, 3))
        out[..., 1, 0], out[..., 2, 0] = -below[..., 2], below[..., 1]
        out[..., 0, 1], out[..., 2, 1] = upper[..., 2], -upper[..., 0]
        out[..., 0, 2], out[..., 2, 2] = lower[..., 2], -lower[..., 0]
        return _roll(a[:, 0]) @ out * self.sign[:, None, :]

    @cached_property
    def _ways(self) -> np.ndarray:
        """Vectors (3, 4, 4, 3) that lead to these points: [from hip, thigh, knee; point, leg]."""
        none, c = np.zeros((4, 3)), np.moveaxis(self.centres, 1, 0)
        return np.array([
            [self.thigh, c[0], self.thigh, self.thigh], [self.shank, none, c[1], self.shank], [self.foot, none, none, c[2]]
        ])  # fmt: skip

    def holding(self, moves: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """Torques (4, 3) that bear the weight of the legs themselves, from their `moves`; gravity (3,) in the axes of the body."""
        return -np.einsum("lp,plij,i->lj", self.masses, moves[1:], gravity)

    def angles(self, feet: np.ndarray) -> np.ndarray:
        """That put the feet at places (4, 3), or as near as the legs reach."""
        d = feet - self.hip
        aside = self.thigh[:, 1] + self.shank[:, 1] + self.foot[:, 1]
        down = -np.sqrt(np.maximum(d[:, 1] ** 2 + d[:, 2] ** 2 - aside**2, 1e-12))
        roll = np.arctan2(d[:, 2], d[:, 1]) - np.arctan2(down, aside)
        reach = (down - self.thigh[:, 2]) + 1j * (d[:, 0] - self.thigh[:, 0])
        b, c = self.shank[:, 2] + 1j * self.shank[:, 0], self.foot[:, 2] + 1j * self.foot[:, 0]
        cosine = (abs(reach) ** 2 - abs(b) ** 2 - abs(c) ** 2) / (2 * abs(b) * abs(c))
        knee = self.bend * np.arccos(np.clip(cosine, -1.0, 1.0)) + np.angle(b) - np.angle(c)
        thigh = np.angle(reach) - np.angle(b + np.exp(1j * knee) * c)
        return self.sign * _wrapped(np.stack((roll, thigh, knee), 1))


def _roll(angle: np.ndarray) -> np.ndarray:
    """Matrices (legs, 3, 3)."""
    out = np.zeros((len(angle), 3, 3))
    c, s = np.cos(angle), np.sin(angle)
    out[:, 0, 0], out[:, 1, 1], out[:, 2, 2], out[:, 1, 2], out[:, 2, 1] = 1.0, c, c, -s, s
    return out


def _pitched(angle: np.ndarray, v: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    out = np.empty(v.shape)
    out[..., 0], out[..., 1], out[..., 2] = c * v[..., 0] + s * v[..., 2], v[..., 1], c * v[..., 2] - s * v[..., 0]
    return out


def _wrapped(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def legs_of(model: Model, feet: tuple[str, ...]) -> Legs:
    """Read off a model that has one free base and twelve hinges, hip, thigh and knee of each leg; feet are links, in that order."""
    rest = model.initial_state()
    if (model.nq, model.nv, model.nu) != (19, 18, 12):
        raise InputError(f"a quadruped has 18 velocities and 12 actuators, but the model has {model.nv} and {model.nu}")
    flat = inspect(model, State(np.array([0.0, 0, 0, 1] + 15 * [0.0]), np.zeros(18)))
    foot = np.array([flat.link_position[model.link_names.index(name)] for name in feet])
    columns = [6 + 3 * np.arange(4)[:, None] + np.arange(3)] * 2
    linear, axes = (
        np.stack([J[:, c].T for J, c in zip(Js, rows, strict=True)])
        for Js, rows in zip(zip(*(flat.point_jacobian(name) for name in feet), strict=True), columns, strict=True)
    )
    _check_axes(axes)
    # the part of the way from a joint to its foot that is across the joint's axis
    arm = np.cross(linear, axes)
    hip = np.stack((foot[:, 0] - arm[:, 1, 0], foot[:, 1] - arm[:, 0, 1], foot[:, 2] - arm[:, 0, 2]), 1)
    thigh = np.stack((0 * hip[:, 0], arm[:, 0, 1], arm[:, 0, 2] - arm[:, 1, 2]), 1)
    sign = np.round(np.stack((axes[:, 0, 0], axes[:, 1, 1], axes[:, 2, 1]), 1))
    shank, lower = arm[:, 1] - arm[:, 2], arm[:, 2]
    b, c = (v[:, 2] + 1j * v[:, 0] for v in (shank, lower))
    bend = _wrapped((sign * rest.q[7:].reshape(4, 3))[:, 2] + np.angle(c) - np.angle(b))
    joints = np.stack((hip, hip + thigh, hip + thigh + shank), 1)
    masses, centres = _carried(model, flat)
    return Legs(hip, thigh, shank, lower, sign, np.where(bend < 0, -1.0, 1.0), masses, centres - joints)


def _carried(model: Model, flat: Inspection) -> tuple[np.ndarray, np.ndarray]:
    """Masses (4, 3) and centres of mass (4, 3, 3), in the axes of the base, of what each hinge carries up to the next."""
    mass, tree = model.params["link.mass"], model.topology.tree
    at = flat.link_position + np.einsum("nij,nj->ni", flat.link_rotation, model.params["link.com"])
    dof = np.array([tree["dof"][b] if b < tree["n_bodies"] else -1 for b in tree["link_body"]])
    masses, centres = np.zeros((4, 3)), np.zeros((4, 3, 3))
    for k in range(12):
        mine = dof == 6 + k
        masses.flat[k] = mass[mine].sum()
        centres.reshape(12, 3)[k] = mass[mine] @ at[mine] / max(masses.flat[k], 1e-12)
    return masses, centres


def _check_axes(axes: np.ndarray) -> None:
    """[leg, joint, coordinate]: hips roll, thighs and knees pitch."""
    wanted = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]])
    off = np.abs(np.abs(axes) - wanted).max((1, 2))
    if (off > 1e-3).any():
        raise InputError(
            f"leg {int(off.argmax())} does not roll at the hip and pitch at thigh and knee, and has no closed form here"
        )
