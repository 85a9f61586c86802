"""The derivative of a softer world at the states of the hard one.

The motion is that of the model as it is. Its derivative is, step by step, that of another model at the same states: one with the
same coordinates, in which hard contacts are springs that begin to push at a distance and whose friction sets in gradually. So a
hand that does not touch yet feels what it would push, and a box that sticks feels what would move it.

With width w and g = 9.81 m/s^2, for a pair whose trees have the reduced mass m:

    force at a gap x     k (w - x)^2 / 4w  for -w < x < w,  -k x  below,  0 above;  k = 4 m g / w
    so that it is m g where the two just touch
    damping              (1 - restitution) 3 / 2 sqrt(g w) of it, per m/s
    friction             mu tanh(slip / sqrt(g w)) of it

Springs of the model keep their own stiffness and friction, and push from w on. Stops of joints, loops and motors are as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import checked_number
from ...model.arrays import ANDERSSON, Model
from ...model.renamed import ByName
from ..run.schedule import every_step
from .exact import Exact
from .meaning import Meaning
from .segments import Bars, Tangents, ahead_in_segments, with_all_states

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

GRAVITY = 9.81
# what the springs of the softer world have in place of what the user said
OWN = ("stiffness", "damping", "exponent", "static_friction", "transition", "margin")


@dataclass(frozen=True)
class Smoothed(Meaning):
    """Contacts reach out by `width` (m) and give way by about as much, in derivatives alone."""

    width: float

    def __post_init__(self) -> None:
        checked_number("width", self.width, 0.0, is_above=True)

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """Of an environment that diverged nothing is said: its cotangents are zero."""
        lost = motion.status >= 0
        if lost.any():
            bars = _without(motion, bars, lost)
        found = Exact().pulled_back(self.softened(motion), bars, wrt)
        return replace(found, params=ByName(self._own_params(motion.model, dict(found.params))))

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """Step by step, each from the state of the motion."""
        soft = self.softened(motion)
        given = self._soft_params(motion.model, dict(params))

        def enter(state: int, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return q[-1].copy(), qd[-1].copy()

        return ahead_in_segments(soft, dots, given, outputs, range(1, motion.steps), enter)

    def softened(self, motion: Trajectory) -> Trajectory:
        """The states of a motion as if they were those of the softer model."""
        from ..run.run import Run
        from ..run.trajectory import Trajectory

        motion = with_all_states(motion)
        states = motion.run.states()
        return Trajectory(
            Run(self.surrogate(motion.model), motion.run.inputs, every_step(), motion.run.threads, states)
        )

    def surrogate(self, model: Model) -> Model:
        """The softer model, with the same coordinates, controls and parameters' names."""
        tree = model.topology.tree
        if not tree["n_pairs"]:
            return model
        topology, workers = _soft_topology(model)
        soft = Model(topology, dict(model.params) | self._springs(model), model._initial, model.batch)
        soft.workers = workers
        return soft

    def _springs(self, model: Model) -> dict[str, np.ndarray]:
        """Parameters of pairs that were hard; of others the margin alone."""
        speed, p = np.sqrt(GRAVITY * self.width), model.params
        k = 4.0 * GRAVITY / self.width * pair_masses(model)
        shape = np.broadcast_shapes(k.shape, p["pair.restitution"].shape, p["pair.friction"].shape)
        said = {
            "stiffness": k, "damping": 1.5 / speed * (1.0 - p["pair.restitution"]) * k, "exponent": 1.0,
            "static_friction": p["pair.friction"], "transition": speed, "margin": self.width,
        }  # fmt: skip
        hard = _is_hard(model)
        found = {}
        for name, value in said.items():
            own = self.width if name == "margin" else p[f"pair.{name}"]
            wide = np.where(hard, value, own)
            found[f"pair.{name}"] = np.broadcast_to(wide, shape if wide.ndim > 1 else wide.shape).copy()
        return found

    def _own_params(self, model: Model, params: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Cotangents of what the user said: friction is both of the spring's; what the softer world chose has none."""
        if not params or not model.topology.tree["n_pairs"]:
            return params
        hard = _is_hard(model)
        params["pair.friction"] = _like(
            model, "pair.friction", params["pair.friction"] + hard * params["pair.static_friction"]
        )
        for name in OWN:
            own = params[f"pair.{name}"] * ~hard if name != "margin" else 0.0 * params["pair.margin"]
            params[f"pair.{name}"] = _like(model, f"pair.{name}", own)
        return params

    def _soft_params(self, model: Model, params: dict[str, Any]) -> dict[str, Any]:
        """Directions of parameters, the other way round."""
        hard = _is_hard(model)
        for name in (f"pair.{one}" for one in OWN):
            if name in params:
                params[name] = (
                    np.asarray(params[name]) * ~hard if name != "pair.margin" else 0.0 * np.asarray(params[name])
                )
        if "pair.friction" in params:
            own = params.get("pair.static_friction", 0.0)
            params["pair.static_friction"] = own + hard * np.asarray(params["pair.friction"])
        soft = self._springs(model)
        return {n: np.broadcast_to(v, soft[n].shape) if n in soft else v for n, v in params.items()}


def _like(model: Model, name: str, bar: np.ndarray) -> np.ndarray:
    """A cotangent of a parameter that has a value per environment in the softer world alone: their sum."""
    return bar.sum(0) if bar.ndim > 1 and model.is_shared(name) else bar


def _is_hard(model: Model) -> np.ndarray:
    """(rows,): which pairs follow the impulse law."""
    tree = model.topology.tree
    found = np.zeros(tree["n_pair_rows"], bool)
    found[[row for row, has_rows in zip(tree["pair_row"], tree["pair_has_rows"], strict=True) if has_rows]] = True
    return found


def _soft_topology(model: Model) -> tuple[Any, dict]:
    """The same world with springs for impulses, and idle workers of it, both made once."""
    kept = model.workers.setdefault("smoothed", [])
    if not kept:
        tree = dict(model.topology.tree)
        laws = zip(tree["pair_law"], tree["pair_has_rows"], strict=True)
        tree["pair_law"] = [ANDERSSON if has_rows else law for law, has_rows in laws]
        tree["pair_has_rows"] = [0] * len(tree["pair_law"])
        tree["has_soft_contact"] = 1
        kept.append((replace(model.topology, tree=tree), {}))
    return kept[0]


def pair_masses(model: Model) -> np.ndarray:
    """(..., rows): the reduced mass of the two trees that a pair is between, kg, mean of the pairs that share a row; what is fixed
    weighs nothing in it, and a tree that touches itself counts as two."""
    tree, mass = model.topology.tree, model.params["link.mass"]
    of_link = np.array([*tree["body_tree"], tree["n_trees"]])[np.asarray(tree["link_body"], int)]
    trees = np.stack([mass[..., of_link == t].sum(-1) for t in range(tree["n_trees"])], axis=-1)
    with np.errstate(divide="ignore"):
        light = np.concatenate([1.0 / trees, np.zeros((*trees.shape[:-1], 1))], axis=-1)
    body_tree = np.array([*tree["body_tree"], tree["n_trees"]])
    a, b = (
        body_tree[np.asarray(tree["shape_body"], int)[np.asarray(tree[side], int)]] for side in ("pair_a", "pair_b")
    )
    of_pair = 1.0 / (light[..., a] + light[..., b])
    rows = np.eye(tree["n_pair_rows"])[np.asarray(tree["pair_row"], int)]
    return of_pair @ rows / np.maximum(rows.sum(0), 1.0)


def _without(motion: Trajectory, bars: Bars, lost: np.ndarray) -> Bars:
    """Cotangents of environments that were not lost."""
    keep, axis = ~lost if motion.run.inputs.is_batched else ~lost[0], 1
    wide = keep if np.ndim(keep) == 0 else keep[:, None]
    q, qd = (None if bar is None else bar * wide for bar in (bars.q, bars.qd))
    shape = {
        n: keep if np.ndim(keep) == 0 else keep.reshape(-1, *(1,) * (b.ndim - axis - 1))
        for n, b in bars.outputs.items()
    }
    return Bars(q, qd, bars.each, {n: b * shape[n] for n, b in bars.outputs.items()})
