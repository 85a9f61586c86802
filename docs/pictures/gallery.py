"""All robots of the zoo in one picture, as their shapes show them: python docs/pictures/gallery.py [gallery.png]."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

import jointgrad as jg
from jointgrad.model.description import Description, Shape
from jointgrad.model.zoo.primitives import rotation

# title, robot, direction of view (elevation, azimuth; degrees), whether a floor is drawn under it
ROBOTS = (
    ("ant", jg.zoo.ant, 28, -60, True),
    ("humanoid", jg.zoo.humanoid, 10, -35, True),
    ("laikago", jg.zoo.laikago, 16, -55, True),
    ("a1", jg.zoo.a1, 16, -55, True),
    ("go2", jg.zoo.go2, 16, -55, True),
    ("franka_arm", jg.zoo.franka_arm, 12, -60, True),
    ("racecar", jg.zoo.racecar, 26, -55, True),
    ("golf", jg.zoo.golf, 12, -22, False),
    ("swimmer", jg.zoo.swimmer, 32, -25, True),
    ("cart_pole", jg.zoo.cart_pole, 14, -60, False),
    ("pendulum (n=3)", lambda: jg.zoo.pendulum(3), 14, -20, False),
    ("double_pendulum", jg.zoo.double_pendulum, 10, -60, False),
)
# joint angles that show more than the start does
POSES = {
    "swimmer": {f"joint_{k}": (0.5, 0.6, -0.6, -0.5)[k] for k in range(4)},
    "double_pendulum": {"joint0": 0.5, "joint1": 0.6},
    "pendulum (n=3)": {"joint0": -0.4, "joint1": -0.3, "joint2": -0.3},
    "cart_pole": {"hinge": 0.2},
    "golf": {"joint0": -1.0, "joint1": -0.35},
    "franka_arm": {"joint2": -0.3, "joint4": -1.9, "joint6": 1.6},
}
LIGHT = np.array([0.35, -0.6, 0.75]) / np.linalg.norm([0.35, -0.6, 0.75])
AROUND = np.linspace(0, 2 * np.pi, 25)


def lathe(radius: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Quads (n, 4, 3) of a profile turned about z."""
    grid = np.stack(
        [np.outer(radius, np.cos(AROUND)), np.outer(radius, np.sin(AROUND)), np.outer(height, 1 + 0 * AROUND)], -1
    )
    return np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]], 2).reshape(-1, 4, 3)


def surface(shape: Shape) -> np.ndarray:
    """Quads (n, 4, 3) of a shape in its own frame, seen from outside counterclockwise."""
    size, quarter = shape.size, np.linspace(0, np.pi / 2, 7)
    if shape.kind == "box":
        return box(np.asarray(size))
    if shape.kind == "cylinder":
        r, h = size
        rings = np.array([0, r / 2, r, r, r, r, r, r / 2, 0]), np.array([-h, -h, -h, -h / 2, 0, h / 2, h, h, h])
        return lathe(*rings)
    r, h = (1.0, 0.0) if shape.kind == "ellipsoid" else (size[0], size[1] if shape.kind == "capsule" else 0.0)
    up = np.concatenate([np.linspace(0, h, 4)[:-1] if h else [], h + r * np.sin(quarter)])
    out = np.concatenate([np.full(3, r) if h else [], r * np.cos(quarter)])
    quads = lathe(np.concatenate([out[::-1], out[1:]]), np.concatenate([-up[::-1], up[1:]]))
    return quads * np.asarray(size) if shape.kind == "ellipsoid" else quads


def box(half: np.ndarray, pieces: int = 8) -> np.ndarray:
    """Faces cut into pieces, so that the painter sorts them well."""
    steps = np.linspace(-1, 1, pieces + 1)
    quads = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (1, -1):
            for a0, a1 in zip(steps[:-1], steps[1:], strict=True):
                for b0, b1 in zip(steps[:-1], steps[1:], strict=True):
                    corners = np.empty((4, 3))
                    corners[:, axis] = side
                    corners[:, u], corners[:, v] = (a0, a1, a1, a0), (b0, b0, b1, b1)
                    quads.append(corners[::side] * half)
    return np.array(quads)


def shaded(quads: np.ndarray, color) -> np.ndarray:
    """Colours (n, 4): full towards the light, half away from it."""
    normals = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    strength = 0.55 + 0.45 * np.clip(normals @ LIGHT, -0.3, 1.0)
    return np.column_stack([np.outer(strength, color[:3]), np.ones(len(quads))])


def posed(title: str, robot: Description):
    """Positions and rotations of the links, by name."""
    for joint, angle in POSES.get(title, {}).items():
        robot.joint(joint).initial = angle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jg.UnsupportedWarning)
        model = robot.compile()
    seen = jg.inspect(model, model.initial_state())
    if title == "franka_arm":  # the ball goes with the hand
        hand, ball = model.link("hand"), model.link("ball")
        seen.link_position[ball] = seen.link_position[hand] + seen.link_rotation[hand] @ (0.0, 0.0, 0.102)
    return {k: (seen.link_position[i], seen.link_rotation[i]) for i, k in enumerate(model.link_names)}


def bare_lines(robot: Description, poses) -> list[np.ndarray]:
    """Between the frames of joints, and to the centre of mass, where a moving link has no solid shape along itself."""
    lines = []
    for joint in robot.joints.values():
        parent = robot.links.get(joint.parent)
        if parent is None or joint.kind == "free":
            continue
        if all(s.kind == "sphere" for s in parent.shapes):
            lines.append(np.array([poses[joint.parent][0], poses[joint.child][0]]))
    for link in robot.links.values():
        if link.shapes and all(s.kind == "sphere" and np.linalg.norm(s.position) > 2 * s.size[0] for s in link.shapes):
            position, turn = poses[link.name]
            lines.append(np.array([position, position + turn @ np.asarray(link.shapes[0].position)]))
    return lines


def draw(axes, title: str, robot: Description, elevation: float, azimuth: float, has_floor: bool) -> None:
    poses = posed(title, robot)
    quads, colors = [], []
    for link in robot.links.values():
        position, turn = poses[link.name]
        for shape in (s for s in link.shapes if s.role != "collision"):
            local = surface(shape) @ rotation(shape.orientation).T + np.asarray(shape.position)
            quads.append(local @ turn.T + position)
            colors.append(shaded(quads[-1], shape.color))
    everything = np.concatenate(quads)
    lines = bare_lines(robot, poses)
    low = np.min([everything.min((0, 1)), *(line.min(0) for line in lines)], axis=0)
    high = np.max([everything.max((0, 1)), *(line.max(0) for line in lines)], axis=0)
    middle, reach = (low + high) / 2, (high - low).max() / 2
    if has_floor:
        draw_floor(axes, middle, low[2], reach)
    paint = np.concatenate(colors)
    axes.add_collection3d(
        Poly3DCollection(everything, facecolors=paint, edgecolors=paint, linewidths=0.4, clip_on=False)
    )
    if lines:
        axes.add_collection3d(Line3DCollection(lines, colors="0.35", linewidths=3, clip_on=False))
    held = [poses[j.child][0] for j in robot.joints.values() if j.parent is None and j.kind == "continuous"]
    for point in held:  # where it turns about the world
        axes.plot(*point[:, None], marker="s", markersize=9, color="0.2", clip_on=False)
    axes.set(xlim=middle[0] + np.array([-reach, reach]), ylim=middle[1] + np.array([-reach, reach]))
    axes.set(zlim=middle[2] + np.array([-reach, reach]))
    axes.set_box_aspect((1, 1, 1), zoom=1.5)
    axes.view_init(elevation, azimuth)
    axes.set_axis_off()
    axes.set_title(title, fontsize=15, y=1.03)


def draw_floor(axes, middle: np.ndarray, height: float, reach: float) -> None:
    x, y = np.meshgrid(np.linspace(-1, 1, 9) * reach + middle[0], np.linspace(-1, 1, 9) * reach + middle[1])
    corners = np.stack([x, y, np.full_like(x, height)], -1)
    tiles = np.stack([corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]], 2).reshape(-1, 4, 3)
    shade = np.where(np.indices((8, 8)).sum(0).ravel() % 2, 0.90, 0.96)
    floor = Poly3DCollection(
        tiles, facecolors=np.repeat(shade[:, None], 3, 1), edgecolors="none", zorder=-1, clip_on=False
    )
    floor.set_sort_zpos(-1e9)
    axes.add_collection3d(floor)


def main(path: Path) -> None:
    figure = plt.figure(figsize=(14, 8), dpi=100)
    for k, (title, make, *view) in enumerate(ROBOTS):
        axes = figure.add_subplot(3, 4, k + 1, projection="3d", computed_zorder=False)
        draw(axes, title, make(), *view)
    figure.subplots_adjust(0.02, 0.02, 0.98, 0.93, wspace=0, hspace=0.25)
    figure.savefig(path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("gallery.png"))
