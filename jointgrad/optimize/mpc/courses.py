"""Grounds to walk on: flat, a slope, steps, and rough, made of boxes. A robot starts at the origin and walks along x."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...model.description import Description, Shape
from ...model.errors import InputError
from ...model.world import World

WIDTH = 1.5  # m to either side
BEGIN = 0.7  # where the flat beginning ends, m
DEPTH = 0.5  # of boxes, m
Boxes = Iterator[Shape]


def slope(degrees: float = 15.0, length: float = 3.0, seed: int = 0) -> Boxes:
    """A ramp up, and a platform at its end."""
    angle = np.radians(degrees)
    half = 0.5 * length
    # the middle of the upper face, and the box's own middle below it
    x, z = BEGIN + half * np.cos(angle), half * np.sin(angle)
    middle = (x + DEPTH * np.sin(angle), 0.0, z - DEPTH * np.cos(angle))
    yield Shape("box", (half, WIDTH, DEPTH), middle, (np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0))
    end, top = BEGIN + length * np.cos(angle), length * np.sin(angle)
    yield Shape("box", (5.0, WIDTH, DEPTH), (end + 5.0, 0.0, top - DEPTH))


def steps(height: float = 0.1, tread: float = 0.5, count: int = 3, seed: int = 0) -> Boxes:
    """Steps up to a platform."""
    for k in range(count):
        yield Shape("box", (10.0, WIDTH, DEPTH), (BEGIN + tread * k + 10.0, 0.0, height * (k + 1) - DEPTH))


def rough(height: float = 0.05, tile: float = 0.3, length: float = 4.5, seed: int = 0) -> Boxes:
    """Tiles of random heights up to `height`."""
    rng = np.random.default_rng(seed)
    rows, columns = round(length / tile), round(2 * WIDTH / tile)
    for i, j in np.ndindex(rows, columns):
        top = height * rng.random()
        place = (BEGIN + (i + 0.5) * tile, -WIDTH + (j + 0.5) * tile, top - DEPTH)
        yield Shape("box", (0.5 * tile, 0.5 * tile, DEPTH), place)


COURSES: dict[str, Callable[..., Boxes]] = {"slope": slope, "steps": steps, "rough": rough}
# how far along x the far end of each begins, m
FAR = {"flat": 3.0, "slope": BEGIN + 3.0, "steps": BEGIN + 1.6, "rough": BEGIN + 3.5}


def course(name: str, world: World, friction: float = 0.8, seed: int = 0) -> World:
    """Put the ground of that name into a world."""
    if name != "flat" and name not in COURSES:
        raise InputError(f"there is no ground {name!r}; there are flat, {', '.join(COURSES)}")
    world.add_ground(friction=friction)
    if name != "flat":
        ground = Description("course", base="fixed")
        link = ground.add_link("course")
        for box in COURSES[name](seed=seed):
            link.shapes.append(box)
            box.friction = (friction,)
        world.add(ground)
    return world
