"""Mass and inertia of a body: as written, or from its geoms, and within what <compiler> asks for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...model.description import Link
from ...model.rotations import rotation
from ..xml import Element
from .geom import Matter
from .pose import ORIGIN, Pose, compose, from_columns, inverse, orientation, pose
from .source import Compiler

TINY_MASS = 1e-14


def set_inertia(
    element: Element, link: Link, explicit: Element | None, matter: list[Matter], c: Compiler, place: Pose
) -> None:
    """Mass, centre of mass and inertia of a body that stands at `place`."""
    mass, com, inertia = 0.0, np.array(place[0]), np.zeros((3, 3))  # without any word of it MuJoCo puts the mass there
    if explicit is not None:
        mass, com, inertia = _explicit(explicit, c)
    if matter and (c.inertia_from_geoms is True or (explicit is None and c.inertia_from_geoms is None)):
        mass, com, inertia = _gathered(matter)
    mass = max(mass, c.least_mass)
    if mass < 0:
        raise element.error(f'the mass of body "{link.name}" is negative')
    link.mass, link.com = mass, tuple(float(x) for x in com)
    link.inertia = _six(_corrected(inertia, c, element, link.name))


def align(link: Link, place: Pose, explicit: Element | None, matter: list[Matter], c: Compiler) -> Pose | None:
    """Put the frame of a free body into its centre of mass, along its principal axes.

    Returns where that is; None where the axes are not written in the file but would have to be computed.
    """
    if len(matter) == 1:
        own = matter[0].pose
    elif explicit is not None and not matter and "fullinertia" not in explicit.attributes:
        own = pose(explicit, c.degrees, c.sequence)
    else:
        return None
    back, turn = inverse(own), rotation(own[1])
    xx, xy, xz, yy, yz, zz = link.inertia
    link.com, link.inertia = ORIGIN, _six(turn.T @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn)
    for shape in link.shapes:
        shape.position, shape.orientation = compose(back, (shape.position, shape.orientation))  # type: ignore[arg-type]
    link.sites = [(n, *compose(back, (p, q))) for n, p, q in link.sites]  # type: ignore[arg-type]
    return compose(place, own)


def _six(m: np.ndarray) -> tuple[float, ...]:
    return tuple(float(m[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))


def _explicit(element: Element, c: Compiler) -> tuple[float, np.ndarray, np.ndarray]:
    mass, com = element.number("mass"), element.floats("pos", 3)
    if mass is None or com is None:
        raise element.error("<inertial> needs pos and mass")
    if "fullinertia" in element.attributes:
        if "diaginertia" in element.attributes:
            raise element.error("<inertial> has both fullinertia and diaginertia; keep one")
        xx, yy, zz, xy, xz, yz = element.floats("fullinertia", 6)
        return mass, np.array(com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    turn = rotation(orientation(element, c.degrees, c.sequence))
    return mass, np.array(com), turn @ np.diag(element.floats("diaginertia", 3, ORIGIN)) @ turn.T


def _gathered(matter: list[Matter]) -> tuple[float, np.ndarray, np.ndarray]:
    """All geoms of a body as one: mass, centre, inertia about it."""
    masses = np.array([m.mass for m in matter])
    mass = float(masses.sum())
    com = masses @ np.array([m.pose[0] for m in matter]) / mass
    inertia = np.zeros((3, 3))
    for m in matter:
        turn, arm = rotation(m.pose[1]), np.array(m.pose[0]) - com
        inertia += turn @ np.diag(m.moments) @ turn.T + m.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, com, inertia


def _corrected(inertia: np.ndarray, c: Compiler, element: Element, name: str) -> np.ndarray:
    """Within the bounds of <compiler>, and, if it asks for that, one that a body can have."""
    moments, axes = np.linalg.eigh(inertia)
    changed = False
    if moments[0] < c.least_inertia:
        moments, changed = np.maximum(moments, c.least_inertia), True
    if moments[0] + moments[1] < moments[2] and c.balance_inertia:
        moments, changed = np.full(3, moments.mean()), True
    if moments[0] < -1e-14 or moments[0] + moments[1] < moments[2] * (1 - 1e-9):
        listed = ", ".join(f"{m:.4g}" for m in moments)
        raise element.error(
            f'the inertia of body "{name}" is that of no body: its moments are {listed}, and none may be negative or '
            'larger than the sum of the other two; balanceinertia="true" of <compiler> evens it out'
        )
    return axes @ np.diag(moments) @ axes.T if changed else inertia


def inertia_box(link: Link) -> Link:
    """The link with the drag box that MuJoCo gives it: the uniform box of its mass and principal inertias."""
    xx, xy, xz, yy, yz, zz = link.inertia
    moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    squares = [moments.sum() - 2 * m for m in moments]
    size = tuple(float(np.sqrt(max(s, 1e-15) * 6 / link.mass)) for s in squares)
    return replace(link, drag_size=size, drag_position=link.com, drag_orientation=from_columns(*axes.T.tolist()))
