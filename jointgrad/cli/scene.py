"""The model of a file that a command is given, with the ground and the start that it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..usage import UsageError


def placed(
    file: Path, ground: bool, height: float | None, base: str | None, keyframe: str | None, steps: int, dt: float | None,
    search_roots: tuple[Path, ...],
) -> Any:  # fmt: skip
    """The model of a file, the state it starts in, and its controls."""
    import numpy as np

    from ..engine.looks.gradcheck import lowest_point
    from ..model.arguments import checked_number

    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    if height is not None:
        checked_number("--height", height)
    world = _world(file, base, search_roots)
    is_bare = ground and not _has_ground(world)
    if is_bare:
        free, lowest = _free_and_lowest(world)
        # what cannot be lifted has its ground beneath it
        world.add_ground(height=0.0 if free or lowest is None else min(0.0, lowest))
    model = world.compile(dt=dt, unphysical="warn")
    start, u = model.initial_state(), np.zeros((steps, model.nu))
    if keyframe is not None:
        start, held = _keyframe(file, world, keyframe, model)
        u += held
    if height is not None or (is_bare and keyframe is None):
        free, lowest = free_bases(model), lowest_point(model, start)
        if height is not None and (not free or lowest is None):
            raise UsageError("--height needs a robot with a free base and shapes that touch: try --base free")
        if lowest is not None:
            start.q[[q + 2 for q in free]] += (height or 0.0) - lowest
    return model, start, u if model.nu else None


def _world(file: Path, base: str | None, search_roots: tuple[Path, ...]) -> Any:
    from ..files import load, load_world
    from ..files.xml import parse
    from ..model.world import World

    if parse(file).tag != "mujoco":
        return World().add(load(file, search_roots=search_roots, missing_meshes="skip"), base=base)
    if base is not None:
        raise UsageError("--base is for URDF files; an MJCF file says itself which of its bodies are free")
    return load_world(file, search_roots=search_roots, missing_meshes="skip")


def _has_ground(world: Any) -> bool:
    shapes = (s for p in world.placed for link in p.robot.links.values() for s in link.shapes)
    return any(s.kind in ("plane", "heightfield", "hfield") for s in shapes)


def _keyframe(file: Path, world: Any, name: str, model: Any) -> tuple[Any, Any]:
    """The state of a keyframe, and its controls."""
    import numpy as np

    from ..model.arrays import State

    frames = {name: key for p in world.placed for name, key in p.robot.keyframes.items()}
    if name not in frames:
        known = f"it has {', '.join(frames)}" if frames else "it has none"
        raise UsageError(f'{file} has no keyframe "{name}"; {known}')
    key = frames[name]
    if len(key["q"]) != model.nq:
        raise UsageError(f'keyframe "{name}" has {len(key["q"])} coordinates, but the model has {model.nq}')
    return State(np.array(key["q"]), np.array(key["qd"])), np.array(key["u"])


def free_bases(model: Any) -> list[int]:
    """Where the coordinates of free joints begin."""
    from ..model.arrays import FREE

    tree = model.topology.tree
    return [q for kind, q in zip(tree["kind"], tree["q"], strict=True) if kind == FREE]


def _free_and_lowest(world: Any) -> tuple[list[int], float | None]:
    from ..engine.looks.gradcheck import lowest_point

    model = world.compile(unphysical="warn")
    return free_bases(model), lowest_point(model, model.initial_state())
