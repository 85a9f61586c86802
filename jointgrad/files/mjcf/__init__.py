"""MJCF in: MuJoCo's own format, read so that everything means what it means there.

What is not simulated yet is listed in one warning; what would change the motion is an error unless it is allowed.
"""

from __future__ import annotations

from typing import Any

from ...model.description import Description
from ...model.errors import ModelError
from ...model.world import World
from ..xml import Folders
from .body import Builder, Scope
from .constraint import constraints
from .inertia import inertia_box
from .report import Report, UnsupportedError
from .section import actuators, apply_flags, dampings, integrator, keyframes, limit_efforts, looks, options
from .source import read
from .tendon import tendons

__all__ = ["UnsupportedError", "load_mjcf", "load_world"]

SECTIONS = (
    "compiler", "option", "size", "visual", "statistic", "default", "extension", "custom", "asset",
    "worldbody", "contact", "deformable", "equality", "tendon", "actuator", "sensor", "keyframe",
)  # fmt: skip


def load_mjcf(
    source: Any,
    *,
    search_roots: Folders = (),
    missing_meshes: str = "error",
    allow_unsupported: bool = False,
) -> Description:
    """A robot from an MJCF file: a path, an open file, or XML text.

    Files that it includes are looked for in its folder and in `search_roots`, and nowhere else. `missing_meshes` is "error"
    or "skip". A file that would move otherwise here than in MuJoCo is refused unless `allow_unsupported`; contact, limits,
    dry friction and equalities are kept as data. `options` of the result are those of the file.
    """
    return _load(source, search_roots, missing_meshes, allow_unsupported)


def load_world(
    source: Any,
    *,
    search_roots: Folders = (),
    missing_meshes: str = "error",
    allow_unsupported: bool = False,
) -> World:
    """A whole MJCF scene. Time step and integrator of the file are `world.dt` and `world.integrator`."""
    robot = _load(source, search_roots, missing_meshes, allow_unsupported)
    settings = robot.options
    medium = settings["density"], settings["viscosity"]
    return World(settings["gravity"], settings["timestep"], integrator(settings), *medium).add(robot)


def _load(source: Any, search_roots: Folders, missing_meshes: str, allow_unsupported: bool) -> Description:
    if missing_meshes not in ("error", "skip"):
        raise ModelError(f'missing_meshes must be "error" or "skip", but is {missing_meshes!r}')
    main = read(source, search_roots)
    report = Report()
    for section in main.root.children:
        if section.tag == "body":
            report.ignores("<body> outside <worldbody>: a piece for another file to include")
        elif section.tag not in SECTIONS:
            raise section.error(f"<{section.tag}> is not a section of an MJCF file")
    settings = options(main, report)
    builder = Builder(Description(main.root.get("model", "mujoco")), report, missing_meshes)
    scope = Scope(main)
    builder.world(scope)
    _scale_to_total_mass(builder.robot, main.compiler.total_mass)
    if builder.attached and main.compiler.conflict != "warning":
        report.changes(f'attaching with conflict="{main.compiler.conflict}"')
    for one in builder.attached:
        tendons(builder, one, is_main=False)
        actuators(builder, one, settings, is_main=False)
        constraints(builder, one, is_main=False)
    if settings["density"] > 0 or settings["viscosity"] > 0:
        drag_boxes(builder.robot, report)
    tendons(builder, scope, is_main=True)
    actuators(builder, scope, settings, is_main=True)
    constraints(builder, scope, is_main=True)
    limit_efforts(builder)
    dampings(builder)
    apply_flags(builder, settings)
    keyframes(builder, main)
    looks(builder, main)
    report.deliver(main.root.file, allow_unsupported)
    builder.robot.options = settings
    return builder.robot


def _scale_to_total_mass(robot: Description, wanted: float) -> None:
    total = sum(link.mass for link in robot.links.values())
    if wanted <= 0 or total <= 0:
        return
    for link in robot.links.values():
        link.mass *= wanted / total
        link.inertia = tuple(x * wanted / total for x in link.inertia)


def drag_boxes(robot: Description, report: Report) -> None:
    """The box that a medium feels of each body."""
    for link in robot.links.values():
        if any(shape.contact.get("fluidshape") == "ellipsoid" for shape in link.shapes):
            report.changes("drag of single shapes (fluidshape)")
        if link.mass > 0:
            box = inertia_box(link)
            link.drag_size, link.drag_position, link.drag_orientation = (
                box.drag_size,
                box.drag_position,
                box.drag_orientation,
            )
