"""A motion as pictures need it: poses of all links at moments in time, contacts, and gradients as arrows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..engine.looks.inspect import inspect
from ..engine.run.trajectory import Gradient, Trajectory
from ..model.arrays import FREE, Model, State
from ..model.errors import InputError
from ..model.rotations import rotation
from .scene import Piece, Scene, quaternion, scene_of

ENVIRONMENTS = 16  # more than these are not drawn side by side
FPS = 60.0
# a gap between environments, of the room that one needs
SPACING = 1.25
DRAWN_LENGTH = 0.45  # of the longest arrow, of the scene's size


@dataclass
class Contacts:
    """Points that touch, a row each: moment, environment, the two links, the point (m) and the force (N) on the first link,
    world axes."""

    frame: np.ndarray
    env: np.ndarray
    links: np.ndarray
    point: np.ndarray
    force: np.ndarray

    def __len__(self) -> int:
        return len(self.frame)

    def at(self, frame: int) -> slice:
        """The rows of a moment; they are in order of time."""
        return slice(*np.searchsorted(self.frame, (frame, frame + 1)))


@dataclass
class Arrows:
    """A gradient to be seen: vectors at links, world axes. With `is_start`, of the start alone, drawn where it was."""

    label: str
    link: np.ndarray  # (k,)
    vector: np.ndarray  # (frames or 1, environments, k, 3)
    is_start: bool = False

    @property
    def largest(self) -> float:
        return float(np.linalg.norm(self.vector, axis=-1).max(initial=0.0))


@dataclass
class Camera:
    """Where to look from: a point to look at, angles about z and above the ground (rad), a distance (m); the radius of all
    that is to be seen, and the edge of a tile of the floor."""

    middle: np.ndarray
    turn: float
    rise: float
    range: float
    reach: float
    tile: float

    @property
    def eye(self) -> np.ndarray:
        flat = np.cos(self.rise)
        way = np.array([flat * np.cos(self.turn), flat * np.sin(self.turn), np.sin(self.rise)])
        return self.middle + self.range * way


@dataclass
class Film:
    """A scene in motion. Axes are time, environment, link. Environments share the ground; `offsets` puts them side by side."""

    scene: Scene
    time: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    contacts: Contacts
    arrows: list[Arrows] = field(default_factory=list)
    n_environments: int = 1  # of the motion; the film shows the first ones
    title: str = ""

    @property
    def n_frames(self) -> int:
        return len(self.time)

    @property
    def n_shown(self) -> int:
        return self.position.shape[1]

    @property
    def note(self) -> str:
        """What a viewer should know that does not show."""
        notes = [*self.scene.notes]
        if self.n_shown < self.n_environments:
            notes.insert(0, f"the first {self.n_shown} of {self.n_environments} environments are shown")
        notes += [f"{a.label}: the longest arrow is {a.largest:.3g}" for a in self.arrows]
        return "; ".join(notes)

    def without_forces(self) -> Film:
        """The same film with nothing drawn where bodies touch."""
        c = self.contacts
        none = Contacts(c.frame[:0], c.env[:0], c.links[:0], c.point[:0], c.force[:0])
        return replace(self, contacts=none)

    def extent(self, env: int | None = None, frame: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner of what is drawn (planes left out), of one environment or of all as if in one place."""
        frames = slice(None) if frame is None else slice(frame, frame + 1)
        envs = slice(None) if env is None else slice(env, env + 1)
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for piece in self.scene.solids:
            corners, _ = piece.triangles()
            if not len(corners):
                continue
            middle = (corners.min(0) + corners.max(0)) / 2
            reach = float(np.linalg.norm(corners - middle, axis=-1).max())
            R = rotation(self.orientation[frames, envs, piece.link])
            at = self.position[frames, envs, piece.link] + R @ middle
            low = np.minimum(low, np.nanmin(at, axis=(0, 1)) - reach)
            high = np.maximum(high, np.nanmax(at, axis=(0, 1)) + reach)
        if not np.isfinite(low).all():
            return np.full(3, -0.5), np.full(3, 0.5)
        return low, high

    def offsets(self) -> np.ndarray:
        """Where each environment is put, (environments, 3): a grid, wider than deep, about the origin."""
        columns = int(np.ceil(np.sqrt(self.n_shown)))
        low, high = self.extent()
        step = SPACING * np.maximum((high - low)[:2], 0.1)
        k = np.arange(self.n_shown)
        grid = np.stack([k // columns, k % columns, 0 * k], -1).astype(np.float64)
        middle = (grid.max(0) + grid.min(0)) / 2
        return (grid - middle) * np.array([-step[0], step[1], 0.0])

    @cached_property
    def size(self) -> float:
        """Of one environment where it starts (m), for lengths of arrows and axes."""
        low, high = self.extent(0, 0)
        return max(float(np.linalg.norm(high - low)), 0.05)

    def camera(self) -> Camera:
        """A view of everything, over all of the time."""
        low, high = self.extent()
        offsets = self.offsets()
        low, high = low + offsets.min(0), high + offsets.max(0)
        reach = max(float(np.linalg.norm(high - low)) / 2, 0.02)
        decade = 10.0 ** np.floor(np.log10(self.size))
        tile = decade * (1.0 if self.size > 3 * decade else 0.5)
        return Camera((low + high) / 2, -0.9, 0.38, 2.1 * reach, reach, float(tile))

    def placed(self, piece: Piece, frame: int = 0, env: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Position and orientation (w x y z) of a piece in the world, where its environment would be alone."""
        R = rotation(self.orientation[frame, env, piece.link])
        position = self.position[frame, env, piece.link] + R @ np.asarray(piece.position)
        return position, quaternion(R @ rotation(piece.orientation))

    @cached_property
    def force_scale(self) -> float:
        """Metres per newton: the usual contact force, not the hardest impact, is drawn at a third of the size."""
        strength = np.linalg.norm(self.contacts.force, axis=-1)
        strength = strength[strength > 0]
        return 0.3 * self.size / float(np.quantile(strength, 0.9)) if len(strength) else 1.0

    def arrow_scale(self, arrows: Arrows) -> float:
        return DRAWN_LENGTH * self.size / arrows.largest if arrows.largest > 0 else 1.0

    def force_arrows(self, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Environment (k,), start and vector (k, 3) as drawn; of the pair, the force on what can move, cut at a size."""
        rows = self.contacts.at(frame)
        vector = self.contacts.force[rows] * self.force_scale
        still = np.array([*self.scene.is_still, True])[self.contacts.links[rows, 0]]
        vector = np.where(still[:, None], -vector, vector)
        length = np.linalg.norm(vector, axis=-1, keepdims=True)
        return (
            self.contacts.env[rows],
            self.contacts.point[rows],
            vector * np.minimum(1.0, 0.6 * self.size / np.maximum(length, 1e-12)),
        )

    def gradient_arrows(self, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Environment, start, vector as drawn, and whose it is (index into `arrows`)."""
        found: list[tuple] = []
        for which, a in enumerate(self.arrows):
            vector = a.vector[0 if len(a.vector) == 1 else frame] * self.arrow_scale(a)
            at = self.position[0 if a.is_start else frame][:, a.link]
            env = np.repeat(np.arange(self.n_shown), len(a.link))
            keep = np.linalg.norm(vector.reshape(-1, 3), axis=-1) > 0.01 * self.size
            found.append((env[keep], at.reshape(-1, 3)[keep], vector.reshape(-1, 3)[keep], np.full(keep.sum(), which)))
        if not found:
            return np.zeros(0, int), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, int)
        env, at, vector, which_one = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return env, at, vector, which_one


def film_of(
    model: Model,
    motion: Trajectory | State | None = None,
    gradient: Gradient | None = None,
    environments: int = ENVIRONMENTS,
    fps: float = FPS,
    title: str = "",
) -> Film:
    """The film of a motion, or of one state (by default the initial one), with contacts, and with a gradient's arrows.

    environments: at most so many are shown, the first ones. fps: pictures per second of simulated time, at most one per step.
    """
    if environments < 1 or not fps > 0:
        raise InputError(f"environments and fps must be more than zero, but are {environments} and {fps}")
    moments = _moments(model, motion, environments, fps)
    position, turn, contacts = _poses(model, moments)
    film = Film(scene_of(model, (position[0, 0], turn[0, 0])), moments.time, position, quaternion(turn), contacts)
    film.n_environments, film.title = moments.n_environments, title
    if gradient is not None:
        film.arrows = _gradient_arrows(model, gradient, moments, isinstance(motion, Trajectory) and motion.q.ndim == 3)
    return film


def pose_of(model: Model, state: State, u: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, Contacts]:
    """Positions (1, 1, n, 3), orientations (1, 1, n, 4) and contacts of one state under controls."""
    once = None if u is None else u[None, None]
    now = _Moments(np.zeros(1), np.zeros(1, int), state.q[None, None], state.qd[None, None], once, None, 1)
    position, turn, contacts = _poses(model, now)
    return position, quaternion(turn), contacts


@dataclass
class _Moments:
    """States to be drawn, all with a time and an environment axis, and the steps they belong to."""

    time: np.ndarray
    steps: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray | None
    force: np.ndarray | None
    n_environments: int


def _moments(model: Model, motion: Trajectory | State | None, environments: int, fps: float) -> _Moments:
    if motion is None:
        motion = model.initial_state(model.batch)
    if isinstance(motion, State):
        q, qd = (np.atleast_2d(a)[None, :environments] for a in motion)
        return _Moments(np.zeros(1), np.zeros(1, int), q, qd, None, None, np.atleast_2d(motion.q).shape[0])
    dt, is_batched = float(np.ravel(model.params["world.dt"])[0]), motion.q.ndim == 3
    count = min(motion.steps, max(1, int(np.ceil(motion.steps * dt * fps - 1e-9))))
    steps = np.unique(np.round(np.linspace(0, motion.steps, count + 1)).astype(int))

    def chosen(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (array if is_batched else array[:, None])[rows, :environments]

    # contact forces are those of the step that begins in a state; the last state is held by the last controls
    last = np.minimum(steps, max(motion.steps - 1, 0))
    u = motion.u
    u = None if u is None or not motion.steps else chosen(u, last)
    force = motion.force
    if force is not None:
        whole = (
            force if force.ndim == (4 if is_batched else 3) else np.broadcast_to(force, (motion.steps, *force.shape))
        )
        force = chosen(whole, last) if motion.steps else None
    n_environments = motion.q.shape[1] if is_batched else 1
    return _Moments(steps * dt, steps, chosen(motion.q, steps), chosen(motion.qd, steps), u, force, n_environments)


def _poses(model: Model, m: _Moments) -> tuple[np.ndarray, np.ndarray, Contacts]:
    """Positions (frames, environments, n, 3), rotations (..., 3, 3) and contacts, by environment: parameters may differ."""
    frames, envs = m.q.shape[:2]
    position, turn = np.empty((frames, envs, model.n_links, 3)), np.empty((frames, envs, model.n_links, 3, 3))
    rows: list[tuple] = []
    number = {name: j for j, name in enumerate(model.link_names)}
    for env in range(envs):
        u, force = (None if a is None else np.ascontiguousarray(a[:, env]) for a in (m.u, m.force))
        state = State(np.ascontiguousarray(m.q[:, env]), np.ascontiguousarray(m.qd[:, env]))
        seen = inspect(model.environment(env), state, u, force)
        position[:, env], turn[:, env] = seen.link_position, seen.link_rotation
        for k, touching in enumerate(seen.contacts):
            rows += [
                (k, env, [number.get(n, -1) for n in c.links], c.point, c.force) for c in touching if c.mode != "open"
            ]
    return position, turn, _contacts(rows)


def _contacts(rows: list[tuple]) -> Contacts:
    rows = sorted(rows, key=lambda row: row[:2])
    frame, env, links, point, force = ([row[i] for row in rows] for i in range(5))
    return Contacts(
        np.array(frame, dtype=np.int64), np.array(env, dtype=np.int64), np.array(links, dtype=np.int64).reshape(-1, 2),
        np.array(point, dtype=np.float64).reshape(-1, 3), np.array(force, dtype=np.float64).reshape(-1, 3),
    )  # fmt: skip


def _gradient_arrows(model: Model, gradient: Gradient, m: _Moments, is_batched: bool) -> list[Arrows]:
    found, tree, envs = [], model.topology.tree, m.q.shape[1]
    bodies = [b for b, kind in enumerate(tree["kind"]) if kind == FREE]
    if gradient.q is not None and bodies:
        links = [next(j for j, b in enumerate(tree["link_body"]) if b == body) for body in bodies]
        q_bar = np.atleast_2d(gradient.q)[:envs]
        vector = np.stack([q_bar[:, tree["q"][b] : tree["q"][b] + 3] for b in bodies], 1)
        found.append(Arrows("dL/d start position", np.array(links), vector[None], is_start=True))
    if gradient.force is not None:
        force = gradient.force if is_batched else np.expand_dims(gradient.force, -3)
        timed = force if force.ndim == 4 else force[None]
        rows = np.minimum(m.steps, len(timed) - 1) if len(timed) > 1 else np.zeros(1, int)
        moving = np.array([j for j, b in enumerate(tree["link_body"]) if b < tree["n_bodies"]], dtype=np.int64)
        found.append(Arrows("dL/d force", moving, timed[rows][:, :envs][:, :, moving, :3]))
    return found
