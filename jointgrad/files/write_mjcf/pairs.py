"""Pairs of shapes that `World.pair` speaks of, one by one, as MJCF's `contact` section has them."""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings

from ...model.arrays import Model
from ...model.description import Shape
from ...model.errors import ModelError
from ...model.world import World
from .words import text

# MuJoCo's own time constant of contact, s
TIME_CONSTANT = 0.02


def spelt_out(world: World) -> tuple[World, list[str]]:
    """A copy of the world whose shapes touch by name alone, and the lines that name every pair that does.

    MJCF has no patterns and no last word: which pairs touch, and how, is asked of the compiled world. Restitution becomes the
    damping ratio with which MuJoCo's soft contact gives back the same share of speed. Our margin lets nothing act at a distance,
    so that MuJoCo's is zero.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compiling the world for its own sake has said it, or will
        model = world.compile(unphysical="warn")
    apart = copy.copy(world)
    apart.rules, apart.placed = [], [dataclasses.replace(p, robot=p.robot.copy()) for p in world.placed]
    for placed in apart.placed:
        for link in placed.robot.links.values():
            for number, shape in enumerate(s for s in link.shapes if s.role != "visual"):
                _silence(shape, f"{link.name}.{number}" if number else link.name)
    return apart, [_line(model, pair) for pair in range(len(model.topology.tree["pair_a"]))]


def _silence(shape: Shape, name: str) -> None:
    if shape.kind == "points":
        raise ModelError(f'MJCF cannot say: the points of "{name}", of which World.pair speaks')
    shape.name = shape.name or name
    shape.contact = {**shape.contact, "contype": 0, "conaffinity": 0}


def _line(model: Model, pair: int) -> str:
    tree = model.topology.tree
    row = {what: float(model.params[f"pair.{what}"][tree["pair_row"][pair]])
           for what in ("friction", "torsion", "rolling", "restitution")}  # fmt: skip
    slide, spin, roll = row["friction"], row["torsion"], row["rolling"]
    dims = 6 if tree["pair_spins"][pair] else 3 if slide else 1
    first, second = (_geom_name(model, tree[side][pair]) for side in ("pair_a", "pair_b"))
    friction = f'friction="{text((slide, slide, spin, roll, roll))}"'
    bounce = f'solref="{text((TIME_CONSTANT, damping_ratio(row["restitution"])))}"' if row["restitution"] else ""
    return f'<pair geom1="{first}" geom2="{second}" condim="{dims}" {friction} margin="0" {bounce}/>'


def _geom_name(model: Model, shape: int) -> str:
    """A shape that has no name of its own bears that of its link, prefix included; others get the prefix of their robot."""
    own, link = model.shape_names[shape], model.link_names[model.topology.tree["shape_link"][shape]]
    is_of_link = own == link or own.startswith(link + ".")
    return own if is_of_link else link[: link.rfind("/") + 1] + own


def damping_ratio(restitution: float) -> float:
    """Of a spring and damper that push but never pull, and give back this share of the speed (Schwager and Poeschel 2007):
    with the ratio sin(a), exp(-tan(a) (pi - 2 a)). Critical damping gives back exp(-2) still, and more damping less."""
    if restitution <= math.exp(-2.0):
        return max(1.0, 0.5 / math.sqrt(max(restitution, 1e-2)))  # far beyond critical: 1 / (2 ratio)^2 comes back
    low, high = 0.0, 0.5 * math.pi
    for _ in range(60):
        middle = 0.5 * (low + high)
        given_back = math.exp(-math.tan(middle) * (math.pi - 2.0 * middle))
        low, high = (middle, high) if given_back > restitution else (low, middle)
    return math.sin(0.5 * (low + high))
