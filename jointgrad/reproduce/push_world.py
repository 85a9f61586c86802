"""A block on three points, pushed by a finger: the world of `jointgrad reproduce push`, and what a set of guesses predicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np

import jointgrad as jg

from .push_data import ARM, MIDDLE, SIDE, Pushes

MASS = 1.518  # kg, the authors'
GROUND = 4.2 / (MASS * 9.8)  # friction on the ground: the authors saw 4.2 N
GRAVITY = 9.81
# the ground gives way by a quarter of a millimetre; its damping lets no rocking survive
STIFFNESS, DAMPING = 2e4, 4e5
FOOT = 0.005  # m: radius of a support
RIM = 0.002  # m: radius of the capsules along the sides, which lie that far inside
SWEEPS = 10  # one point: each makes up for what the last left
FINGER_MASS = 1e5  # kg: nothing slows it down
CORNERS = np.array([[0.0, 0.0], [SIDE, 0.0], [0.0, SIDE]]) - MIDDLE


@dataclass(frozen=True)
class Pace:
    """How a push is simulated: slow enough that inertia does not count, which the speed of the real one (2.5 mm/s) far exceeds."""

    speed: float = 0.04  # m/s, of the finger
    transition: float = 0.015  # m/s: slip at which friction is sliding friction
    dt: float = 5e-4
    reach: float = 0.0175  # m that the finger goes, about

    @property
    def steps(self) -> int:
        return round(self.reach / self.speed / self.dt)


@dataclass(frozen=True)
class Guess:
    """What is not known for sure; the values are those of the authors, or zero."""

    pusher_friction: float = 0.5
    finger_radius: float = 1e-3
    height: float = 0.01  # m: where the finger touches, above the ground
    centre_x: float = 0.0  # m: of mass, from the middle of the triangle
    centre_y: float = 0.0
    further: float = 0.0  # m: the finger goes on after its log ends
    aside: float = 0.0  # m: where it is, to the left of where the log says


NAMES = tuple(f.name for f in fields(Guess))
SCALES = np.array([0.1, 1e-3, 5e-3, 1e-3, 1e-3, 1e-3, 1e-3])  # of steps in a fit


def world(pace: Pace) -> jg.World:
    """The supports touch the ground by springs, the finger touches the sides by impulses."""
    block = jg.Description("block", base="free")
    flat = MASS * SIDE**2 / 18
    body = block.add_link("block", MASS, inertia=(flat, flat / 2, 0.0, flat, 0.0, 2 * flat))
    for k in range(3):
        body.shapes.append(jg.Shape("sphere", (FOOT,), CORNERS[k].tolist() + [FOOT], name=f"foot{k}"))
    for k in range(3):
        body.shapes.append(_side(CORNERS[k], CORNERS[(k + 1) % 3], f"side{k}"))
    finger = jg.Description("finger")
    finger.add_link("slide", FINGER_MASS, inertia=(1.0, 1.0, 1.0))
    finger.add_link("tip", FINGER_MASS, inertia=(1.0, 1.0, 1.0)).shapes.append(
        jg.Shape("sphere", (1e-3,), (0.0, 0.0, 0.01), name="tip")
    )
    finger.add_joint("finger_x", "prismatic", None, "slide", axis=(1.0, 0.0, 0.0), initial=-1.0)
    finger.add_joint("finger_y", "prismatic", "slide", "tip", axis=(0.0, 1.0, 0.0))
    whole = jg.World(gravity=(0.0, 0.0, -GRAVITY))
    whole.add(block).add(finger).add_ground()
    springs = jg.Spring(STIFFNESS, DAMPING, 1.0, static_friction=GROUND, transition=pace.transition)
    whole.pair("*", "*", contact=None)
    whole.pair("foot?", "ground", contact=springs, friction=GROUND)
    return whole.pair("side?", "tip", contact=jg.Impulse(sweeps=SWEEPS))


def _side(a: np.ndarray, b: np.ndarray, name: str) -> jg.Shape:
    """A capsule whose outside is the side from a to b, the block being on its left."""
    along = (b - a) / np.linalg.norm(b - a)
    inward = np.array([-along[1], along[0]])
    middle, half = (a + b) / 2 + RIM * inward, np.linalg.norm(b - a) / 2 - 2 * RIM
    turn = np.arctan2(along[1], along[0])
    # z of the capsule along the side: a quarter turn about y, then the turn about z
    q = np.array([np.cos(turn / 2), -np.sin(turn / 2), np.cos(turn / 2), np.sin(turn / 2)]) / np.sqrt(2)
    return jg.Shape("capsule", (RIM, half), (*middle.tolist(), 0.01), q.tolist(), name=name)


def loads(supports: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(n, 3) N: what the supports carry at rest."""
    A = np.concatenate([np.swapaxes(supports, 1, 2), np.ones((len(supports), 1, 3))], axis=1)
    b = np.broadcast_to([*centre, 1.0], (len(supports), 3))[..., None]
    return MASS * GRAVITY * np.linalg.solve(A, b)[..., 0]


@dataclass(frozen=True)
class Pushing:
    """Pushes as environments of one batch: a model (which may carry networks), and how a guess enters it."""

    model: jg.Model
    pushes: Pushes
    pace: Pace

    def parameters(self, guess: Guess) -> dict[str, np.ndarray]:
        """Of the model, one value per push, so that a gradient says what each push would have."""
        model, n = self.model, len(self.pushes)
        names = ("pair.friction", "shape.size", "shape.placement", "link.com")
        values = {k: np.repeat(model.params[k][None], n, axis=0) for k in names}
        feet, sides, tip = self._shapes()
        sink = loads(self.pushes.supports, np.zeros(2)) / STIFFNESS  # the block begins level and, but for its centre, at rest
        values["shape.placement"][:, feet, :2] = self.pushes.supports
        values["shape.placement"][:, feet, 2] = FOOT - sink
        values["shape.placement"][:, [*sides, tip], 2] = guess.height
        values["shape.size"][:, tip, 0] = guess.finger_radius
        values["link.com"][:, model.link("block"), :2] = guess.centre_x, guess.centre_y
        values["pair.friction"][:, self._pairs()] = guess.pusher_friction
        return values

    def start(self, guess: Guess) -> jg.State:
        pushes, model = self.pushes, self.model
        state = model.initial_state(len(pushes))
        q, qd, ahead = state.q, state.qd, pushes.heading
        left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
        q[:, :2], q[:, 2] = pushes.before[:, :2], 0.0
        q[:, 3], q[:, 6] = np.cos(pushes.before[:, 2] / 2), np.sin(pushes.before[:, 2] / 2)
        q[:, 7:] = pushes.first + guess.aside * left
        qd[:, 6:] = (pushes.last - pushes.first + guess.further * ahead) / (self.pace.steps * self.pace.dt)
        return jg.State(q, qd)

    def motion(self, guess: Guess, weights: np.ndarray | None = None) -> jg.Trajectory:
        values = self.parameters(guess)
        if weights is not None:
            values["graft.weight"] = np.repeat(weights[None], len(self.pushes), axis=0)
        return jg.rollout(self.model.replace(values), self.start(guess), steps=self.pace.steps)

    def jacobian(self, motion: jg.Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of x, y (m) and ARM times the heading of every push: (n, 3, guesses), (n, 3, weights)."""
        found = [self._row(motion.backward(q_bar=bar, wrt=("state", "params"))) for bar in self._bars(motion)]
        return tuple(np.stack(some, axis=1) for some in zip(*found, strict=True))  # type: ignore[return-value]

    def _bars(self, motion: jg.Trajectory) -> list[np.ndarray]:
        q = motion.last.q
        bars = [np.zeros_like(q) for _ in range(3)]
        bars[0][:, 0], bars[1][:, 1] = 1.0, 1.0
        square = q[:, 3] ** 2 + q[:, 6] ** 2
        bars[2][:, 3], bars[2][:, 6] = -2 * ARM * q[:, 6] / square, 2 * ARM * q[:, 3] / square
        return bars

    def _row(self, grad: jg.Gradient) -> tuple[np.ndarray, np.ndarray]:
        ahead, (_, sides, tip) = self.pushes.heading, self._shapes()
        left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
        place, block = grad.params["shape.placement"], self.model.link("block")
        columns = {
            "pusher_friction": grad.params["pair.friction"][:, self._pairs()].sum(axis=1),
            "finger_radius": grad.params["shape.size"][:, tip, 0],
            "height": place[:, [*sides, tip], 2].sum(axis=1),
            "centre_x": grad.params["link.com"][:, block, 0],
            "centre_y": grad.params["link.com"][:, block, 1],
            "further": (grad.qd[:, 6:] * ahead).sum(axis=1) / (self.pace.steps * self.pace.dt),
            "aside": (grad.q[:, 7:] * left).sum(axis=1),
        }
        return np.stack([columns[name] for name in NAMES], axis=1), grad.params["graft.weight"]

    def _shapes(self) -> tuple[list[int], list[int], int]:
        names = [[self.model.shape(f"{kind}{k}") for k in range(3)] for kind in ("foot", "side")]
        return names[0], names[1], self.model.shape("tip")

    def _pairs(self) -> list[int]:
        return [k for k, name in enumerate(self.model.pair_names) if "side" in name]


def predicted(motion: jg.Trajectory) -> np.ndarray:
    """(n, 3): x, y and heading of the block at the end."""
    q = motion.last.q
    return np.column_stack([q[:, :2], 2 * np.arctan2(q[:, 6], q[:, 3])])


def vector(guess: Guess) -> np.ndarray:
    return np.array([asdict(guess)[name] for name in NAMES])


def compiled(pace: Pace) -> jg.Model:
    return world(pace).compile(dt=pace.dt, contact=jg.Impulse(sweeps=SWEEPS))
