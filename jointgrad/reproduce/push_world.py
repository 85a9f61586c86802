"""A block on three points, pushed by a finger: the world of `jointgrad reproduce push`, and what a set of guesses predicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np

import jointgrad as jg

from .push_data import ARM, MIDDLE, SIDE, Pushes, meeting, turned

MASS = 1.518  # kg, the authors'
GROUND = 4.2 / (MASS * 9.8)  # friction on the ground: the authors saw 4.2 N
GRAVITY = 9.81
# the ground gives way by a quarter of a millimetre; its damping lets no rocking survive
STIFFNESS, DAMPING = 2e4, 4e5
FOOT = 0.005  # m: radius of a support
FINGER_RADIUS = 1e-3  # m, the authors'
RIM = 0.002  # m: radius of the capsules along the sides, which lie that far inside
SWEEPS = 10  # one point: each makes up for what the last left
FINGER_MASS = 1e5  # kg: nothing slows it down
PLACE = [0, 1, 3]  # of x, y and heading of the block in q and qd; z is between them
FINGER = [6, 7]
# of a push, before it begins, in the block's axes: the finger's direction, and where it will touch (50 mm from the middle is 1)
KNOWN = ("ahead_x", "ahead_y", "place_x", "place_y")
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
    height: float = 0.01  # m: where the finger touches, above the ground
    centre_x: float = 0.0  # m: of mass, from the middle of the triangle
    centre_y: float = 0.0
    further: float = 0.0  # m: the finger goes on after its log ends
    aside: float = 0.0  # m: where it is, to the left of where the log says


NAMES = tuple(f.name for f in fields(Guess))
SCALES = np.array([0.1, 5e-3, 1e-3, 1e-3, 1e-3, 1e-3])  # of steps in a fit


def world(pace: Pace) -> jg.World:
    """The supports touch the ground by springs, the finger touches the sides by impulses."""
    block = jg.Description("block")
    flat = MASS * SIDE**2 / 18
    body = block.add_link("block", MASS, inertia=(flat, flat / 2, 0.0, flat, 0.0, 2 * flat))
    # one coordinate at a time, so that networks may see them; the tilt, which they shall not see, is one joint
    for k, name in enumerate(("x", "y", "z")):
        block.add_joint(name, "prismatic", None, "block", axis=tuple(np.eye(3)[k]))
    block.add_joint("heading", "revolute", None, "block", axis=(0.0, 0.0, 1.0))
    block.add_joint("tilt", "universal", None, "block", axis=(1.0, 0.0, 0.0), second_axis=(0.0, 1.0, 0.0))
    # they move nothing: their controls tell networks what is known of a push
    for name in KNOWN:
        block.add_actuator(name, "heading", gain=0.0)
    for k in range(3):
        body.shapes.append(jg.Shape("sphere", (FOOT,), (*CORNERS[k].tolist(), FOOT), name=f"foot{k}"))
    for k in range(3):
        body.shapes.append(_side(CORNERS[k], CORNERS[(k + 1) % 3], f"side{k}"))
    finger = jg.Description("finger")
    tip = finger.add_link("tip", FINGER_MASS, inertia=(FINGER_MASS,) * 3)
    tip.shapes.append(
        jg.Shape("capsule", (FINGER_RADIUS, 0.02), (0.0, 0.0, 0.01), name="tip")
    )  # upright: it meets sides level
    finger.add_joint("finger", "planar", None, "tip", axis=(0.0, 0.0, 1.0), initial=(-1.0, 0.0, 0.0))
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
    return jg.Shape("capsule", (RIM, float(half)), (*middle.tolist(), 0.01), q.tolist(), name=name)


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
        names = ("pair.friction", "shape.placement", "link.com")
        values = {k: np.repeat(model.params[k][None], n, axis=0) for k in names}
        feet, sides = self._shapes()
        sink = (
            loads(self.pushes.supports, np.zeros(2)) / STIFFNESS
        )  # the block begins level and, but for its centre, at rest
        values["shape.placement"][:, feet, :2] = self.pushes.supports
        values["shape.placement"][:, feet, 2] = FOOT - sink
        values["shape.placement"][:, sides, 2] = guess.height
        values["link.com"][:, model.link("block"), :2] = guess.centre_x, guess.centre_y
        values["pair.friction"][:, self._pairs()] = guess.pusher_friction
        return values

    def start(self, guess: Guess) -> jg.State:
        """The finger begins where it must for its log and its force to agree on when it touches."""
        pushes, state = self.pushes, self.model.initial_state(len(self.pushes))
        normal, outside = meeting(pushes)
        back = (outside - FINGER_RADIUS) / -(normal * pushes.heading).sum(axis=1)
        state.q[:, PLACE] = pushes.before
        state.q[:, FINGER] = pushes.first + back[:, None] * pushes.heading + guess.aside * self._along_side()
        path = pushes.last - pushes.first + guess.further * pushes.heading
        state.qd[:, FINGER] = path / (self.pace.steps * self.pace.dt)
        return state

    def _along_side(self) -> np.ndarray:
        """(n, 2): one to the left, and as far along the finger's path that it touches when it did."""
        ahead, (normal, _) = self.pushes.heading, meeting(self.pushes)
        left = turned(ahead, np.full(len(ahead), np.pi / 2))
        return left - ((normal * left).sum(axis=1) / (normal * ahead).sum(axis=1))[:, None] * ahead

    def motion(self, guess: Guess, weights: np.ndarray | None = None) -> jg.Trajectory:
        values = self.parameters(guess)
        if weights is not None:
            values["graft.weight"] = np.repeat(weights[None], len(self.pushes), axis=0)
        known = np.broadcast_to(self.known(), (self.pace.steps, len(self.pushes), len(KNOWN)))
        return jg.rollout(self.model.replace(values), self.start(guess), known)

    def known(self) -> np.ndarray:
        """(n, KNOWN)"""
        pushes, back = self.pushes, -self.pushes.before[:, 2]
        return np.column_stack([turned(pushes.heading, back), turned(pushes.onset - pushes.before[:, :2], back) / 0.05])

    def jacobian(self, motion: jg.Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of x, y (m) and ARM times the heading of every push: (n, 3, guesses), (n, 3, weights)."""
        found = [self._row(motion.backward(q_bar=bar, wrt=("state", "params"))) for bar in self._bars(motion)]
        return tuple(np.stack(some, axis=1) for some in zip(*found, strict=True))  # type: ignore[return-value]

    def _bars(self, motion: jg.Trajectory) -> list[np.ndarray]:
        bars = [np.zeros_like(motion.last.q) for _ in PLACE]
        for bar, at, unit in zip(bars, PLACE, (1.0, 1.0, ARM), strict=True):
            bar[:, at] = unit
        return bars

    def _row(self, grad: jg.Gradient) -> tuple[np.ndarray, np.ndarray]:
        (_, sides), block = self._shapes(), self.model.link("block")
        columns = {
            "pusher_friction": grad.params["pair.friction"][:, self._pairs()].sum(axis=1),
            "height": grad.params["shape.placement"][:, sides, 2].sum(axis=1),
            "centre_x": grad.params["link.com"][:, block, 0],
            "centre_y": grad.params["link.com"][:, block, 1],
            "further": (grad.qd[:, FINGER] * self.pushes.heading).sum(axis=1) / (self.pace.steps * self.pace.dt),
            "aside": (grad.q[:, FINGER] * self._along_side()).sum(axis=1),
        }
        weights = grad.params["graft.weight"].reshape(len(self.pushes), -1)
        return np.stack([columns[name] for name in NAMES], axis=1), weights

    def _shapes(self) -> tuple[list[int], list[int]]:
        feet, sides = ([self.model.shape(f"{kind}{k}") for k in range(3)] for kind in ("foot", "side"))
        return feet, sides

    def _pairs(self) -> list[int]:
        return [k for k, name in enumerate(self.model.pair_names) if "side" in name]


def predicted(motion: jg.Trajectory) -> np.ndarray:
    """(n, 3): x, y and heading of the block at the end."""
    return motion.last.q[:, PLACE]


def guess_of(x: np.ndarray) -> Guess:
    """The nearest that can be: friction and height are not negative."""
    low = np.where([name in ("pusher_friction", "height") for name in NAMES], 0.0, -np.inf)
    return Guess(*(float(v) for v in np.maximum(x, low)))


def vector(guess: Guess) -> np.ndarray:
    return np.array([asdict(guess)[name] for name in NAMES])


def compiled(pace: Pace) -> jg.Model:
    model = world(pace).compile(dt=pace.dt, contact=jg.Impulse(sweeps=SWEEPS))
    jg.step(model, model.initial_state(), np.zeros(model.nu))  # loads the engine before threads ask for it together
    return model


def augmented(model: jg.Model, hidden: tuple[int, ...]) -> jg.Model:
    """With a network that knows how the block is pushed, and says what is missing from the friction on it: a force and a torque, in
    the block's axes. It begins by saying nothing."""
    return jg.graft(model, "link.force", ["control"], jg.MLP(hidden, scale=0.0), rows=["block"], sees="all")


def planar_weights(model: jg.Model) -> tuple[np.ndarray, np.ndarray]:
    """Of the network: which are of its last layer, and which of these speak of the plane (two forces and one torque of six)."""
    sizes, count = model.topology.grafts[0].sizes, len(model.params["graft.weight"])
    is_last = np.arange(count) >= count - (sizes[-2] + 1) * sizes[-1]
    part = (np.arange(count) - np.argmax(is_last)) % sizes[-1]
    return is_last, is_last & np.isin(part, (0, 1, 5))
