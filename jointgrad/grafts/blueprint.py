"""Networks as part of a model: what they see, what they change, and where their weights are (NeuralSim, Heiden 2021).

    model = jg.graft(model, "joint.force", ["joint.position", "joint.velocity"], jg.MLP((8, 8)))

gives a model with a network at every joint; its weights are the parameter "graft.weight", with gradients like any other.

| target | one network output per | meaning of the output |
|---|---|---|
| joint.force | degree of freedom | N or N m |
| link.force | link, six outputs | force and torque in the link's own axes, at its origin |
| control | actuator | what the actuator is asked for |
| joint.damping, .stiffness, .armature, .friction; actuator.gain, .damping | joint, actuator | the parameter |
| pair.friction, .restitution, .stiffness, .damping | row of pair parameters | the parameter |
| world.density, .viscosity | world | the parameter |

| input | numbers | |
|---|---|---|
| joint.position, joint.velocity | one per scalar joint | |
| control | one per actuator | |
| link.velocity | six per link | of its origin, then angular, in its own axes |

per="each": one network per row of the target, which sees inputs of the same joint alone, or with sees="all" those of the whole
robot; per="whole": one network that sees all inputs and speaks to all rows. What cannot be negative (damping, armature,
friction, restitution, the medium's density) ends at zero.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..model.arrays import FRICTION_ROW, INTEGRATORS, PRISMATIC, REVOLUTE, Model
from ..model.errors import InputError
from ..model.grafts import (
    ACTIVATIONS,
    COUNTS,
    DISSIPATE,
    LISTS,
    MODES,
    SEE_CONTROL,
    SEE_LINK,
    SEE_POSITION,
    SEE_RATE,
    TARGETS,
)
from .weights import first_weights, layers, load_weights, save_weights, with_layers

__all__ = ["MLP", "Blueprint", "graft", "layers", "load_weights", "save_weights", "with_layers"]

# targets that may be negative; the others end at zero, whatever a network says
SIGNED = ("joint.force", "link.force", "control", "joint.stiffness", "actuator.gain", "actuator.damping")
INPUTS = ("joint.position", "joint.velocity", "control", "link.velocity")


@dataclass(frozen=True)
class MLP:
    """Layers of a network: sizes of the hidden ones, their activation, and how large the first weights are (0: all zero)."""

    hidden: Sequence[int] = (8, 8)
    activation: str = "tanh"
    scale: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Blueprint:
    """A graft that a model carries: sizes of its layers, and where the weights of each of its networks begin."""

    target: str
    inputs: tuple[str, ...]
    rows: tuple[str, ...]
    sizes: tuple[int, ...]
    activation: str
    mode: str
    first_weights: tuple[int, ...]
    seen: tuple[tuple[str, ...], ...] = ()  # of each network: names of the numbers that it sees, in order

    @property
    def n_weights(self) -> int:
        """Of one network."""
        return sum((a + 1) * b for a, b in itertools.pairwise(self.sizes))


@dataclass(frozen=True)
class Row:
    """A row of a target: its number for the engine, and the body, link or actuator that it belongs to, -1 for none."""

    name: str
    index: int
    body: int = -1
    link: int = -1
    actuator: int = -1


def graft(
    model: Model, target: str, inputs: Sequence[str], network: MLP | None = None, *, rows: Sequence[str] | None = None,
    per: str = "each", sees: str = "own", mode: str = "residual", shared: bool = False,
) -> Model:  # fmt: skip
    """The same model with a network at some quantity of its step.

    rows: names of joints, links, actuators or pairs, patterns allowed; None for all. sees: what belongs to the row ("own"), or
    to any joint, link and actuator ("all"). mode: what the output does to the target:
    "residual" is added, "replace" stands for it, "scale" multiplies it by 1 + output, "dissipate" (joint forces) brakes with a
    coefficient that is the output's square, so that no energy can come from it. shared: all networks have the same weights.
    """
    network = network or MLP()
    _check(model, target, inputs, network, per, mode)
    if sees not in ("own", "all"):
        raise InputError(f'a network of a graft sees "own" or "all", but sees is {sees!r}')
    found = _rows(model, target, rows)
    groups = [found] if per == "whole" else [[row] for row in found]
    return _Builder(model, target, tuple(inputs), network, mode, shared, sees == "all").built(groups)


def _check(model: Model, target: str, inputs: Sequence[str], network: MLP, per: str, mode: str) -> None:
    for value, names, what in (
        (target, TARGETS, "target"), (mode, MODES, "mode"), (network.activation, ACTIVATIONS, "activation"),
        (per, ("each", "whole"), "per"), *((one, INPUTS, "input") for one in inputs),
    ):  # fmt: skip
        if value not in names:
            raise InputError(f'there is no {what} "{value}" of a graft; the names are {", ".join(names)}')
    if not inputs:
        raise InputError("a graft needs at least one input")
    if MODES[mode] == DISSIPATE and target != "joint.force":
        raise InputError(f'mode "dissipate" brakes joint forces, but the target is "{target}"')
    if MODES[mode] != MODES["residual"] and target == "link.force":
        raise InputError(f'a graft on "link.force" can only be residual, but mode is "{mode}"')
    if model.topology.tree["integrator"] == INTEGRATORS["rk4"]:
        raise InputError('grafts do not work with integrator "rk4" yet; compile with another')
    if any(not isinstance(n, int) or n < 1 for n in network.hidden):
        raise InputError(f"hidden sizes of MLP must be whole numbers from 1 on, but are {tuple(network.hidden)}")


def _rows(model: Model, target: str, patterns: Sequence[str] | None) -> list[Row]:
    tree, kind = model.topology.tree, target.partition(".")[0]
    if kind == "joint":
        scalar = _scalar_bodies(tree)
        index = {b: tree["dof"][b] if target == "joint.force" else tree["frame"][b] for b in scalar}
        found = [Row(model.joint_names[tree["frame"][b]], index[b], body=b) for b in scalar]
    elif kind == "link":
        found = [Row(n, j, link=j) for j, n in enumerate(model.link_names) if tree["link_body"][j] < tree["n_bodies"]]
    elif kind == "pair":
        found = [Row(n, j) for j, n in enumerate(model.pair_names)]
    elif kind == "world":
        found = [Row("world", 0)]
    else:
        found = [Row(n, a, actuator=a) for a, n in enumerate(model.actuator_names)]
    if patterns is not None:
        chosen = [r for r in found if any(fnmatch.fnmatchcase(r.name, p) for p in patterns)]
        lost = [p for p in patterns if not any(fnmatch.fnmatchcase(r.name, p) for r in found)]
        if lost:
            raise InputError(
                f'"{lost[0]}" matches no row of {target}; the names are {", ".join(r.name for r in found)}'
            )
        found = chosen
    if not found:
        raise InputError(f'there is nothing for a graft on "{target}" in this model')
    if target == "joint.friction":
        _need_friction(model, found)
    return found


def _need_friction(model: Model, rows: list[Row]) -> None:
    has_friction = model.topology.frames_with(FRICTION_ROW)
    lost = [r.name for r in rows if r.index not in has_friction]
    if lost:
        raise InputError(f'joint "{lost[0]}" was compiled without dry friction; describe it with some, however small')


def _scalar_bodies(tree: Mapping[str, Any]) -> list[int]:
    """Bodies whose joint has one coordinate, in the order of the coordinates."""
    scalar = [b for b, kind in enumerate(tree["kind"]) if kind in (REVOLUTE, PRISMATIC)]
    return sorted(scalar, key=lambda b: tree["dof"][b])


def _owner(tree: Mapping[str, Any], row: Row) -> int:
    """The body that a row belongs to, -1 for none."""
    if row.link >= 0:
        return tree["link_body"][row.link]
    if row.actuator >= 0:
        return next((b for b in _scalar_bodies(tree) if tree["dof"][b] == tree["actuator_dof"][row.actuator]), -1)
    return row.body


def _width(sense: int) -> int:
    """How many numbers a network sees of one thing."""
    return 6 if sense == SEE_LINK else 1


class _Builder:
    """Appends one graft to the lists of a model."""

    def __init__(
        self, model: Model, target: str, inputs: tuple[str, ...], network: MLP, mode: str, shared: bool, sees_all: bool
    ) -> None:
        self.model, self.target, self.inputs, self.sees_all = model, target, inputs, sees_all
        self.network, self.mode, self.shared = network, mode, shared
        self.each = 6 if target == "link.force" else 1  # outputs for one row
        tree = model.topology.tree
        self.lists = {name: list(tree[name]) for name in LISTS}
        self.counts = {name: tree[name] for name in COUNTS}

    def built(self, groups: list[list[Row]]) -> Model:
        seen = [self._senses(group) for group in groups]
        widths = [sum(_width(kind) for kind, _ in senses) for senses in seen]
        if self.shared and len(set(widths)) > 1:
            raise InputError(
                f"networks that share weights must see equally many numbers, but they see {sorted(set(widths))}"
            )
        firsts, sizes = [], ()
        for group, senses, n_in in zip(groups, seen, widths, strict=True):
            sizes = (n_in, *self.network.hidden, self.each * len(group))
            firsts.append(self._add_network(sizes, senses, group, firsts))
        blueprint = Blueprint(
            self.target, self.inputs, tuple(r.name for g in groups for r in g), sizes, self.network.activation, self.mode,
            tuple(firsts), tuple(tuple(self._names(senses)) for senses in seen),
        )  # fmt: skip
        return self._model(blueprint)

    def _names(self, senses: list[tuple[int, int]]) -> list[str]:
        """Of the numbers that a network sees, in order."""
        tree, model = self.model.topology.tree, self.model
        at_q, at_dof = (
            {tree[k][b]: model.joint_names[tree["frame"][b]] for b in _scalar_bodies(tree)} for k in ("q", "dof")
        )
        names: list[str] = []
        for kind, i in senses:
            if kind == SEE_LINK:
                names += [f"link.velocity[{model.link_names[i]}][{k}]" for k in range(6)]
            elif kind == SEE_CONTROL:
                names.append(f"control[{model.actuator_names[i]}]")
            else:
                names.append(f"joint.position[{at_q[i]}]" if kind == SEE_POSITION else f"joint.velocity[{at_dof[i]}]")
        return names

    def _senses(self, group: list[Row]) -> list[tuple[int, int]]:
        """What a network sees: of its own joint, link or actuator where the target has one and it shall, else everything."""
        tree, model, row = self.model.topology.tree, self.model, group[0]
        is_own = len(group) == 1 and not self.sees_all
        owner = _owner(tree, row) if is_own else -1
        bodies = [b for b in _scalar_bodies(tree) if owner in (-1, b)]
        links = [j for j in range(model.n_links) if tree["link_body"][j] < tree["n_bodies"]]
        links = [row.link] if row.link >= 0 and is_own else [j for j in links if owner in (-1, tree["link_body"][j])]
        actuators = [a for a in range(model.nu) if owner == -1 or tree["actuator_dof"][a] == tree["dof"][owner]]
        found = {
            "joint.position": [(SEE_POSITION, tree["q"][b]) for b in bodies],
            "joint.velocity": [(SEE_RATE, tree["dof"][b]) for b in bodies],
            "control": [(SEE_CONTROL, a) for a in actuators], "link.velocity": [(SEE_LINK, j) for j in links],
        }  # fmt: skip
        for name in self.inputs:
            if not found[name]:
                raise InputError(f'the network at "{row.name}" has no "{name}" to see')
        return [sense for name in self.inputs for sense in found[name]]

    def _add_network(self, sizes: tuple[int, ...], senses: list, group: list[Row], firsts: list[int]) -> int:
        """One more network; returns where its weights begin."""
        lists, counts = self.lists, self.counts
        first = firsts[0] if self.shared and firsts else counts["n_weights"]
        if first == counts["n_weights"]:
            counts["n_weights"] += sum((a + 1) * b for a, b in itertools.pairwise(sizes))
        node = counts["n_nodes"]
        last = node + sum(sizes[:-1])
        for name, value in (
            ("net_weight", first), ("net_node", node), ("net_layer", len(lists["layer_in"])), ("net_layers", len(sizes) - 1)
        ):  # fmt: skip
            lists[name].append(value)
        kinds = [ACTIVATIONS[self.network.activation]] * (len(sizes) - 2) + [ACTIVATIONS["linear"]]
        for (a, b), kind in zip(itertools.pairwise(sizes), kinds, strict=True):
            for name, value in (("layer_in", a), ("layer_out", b), ("layer_kind", kind)):
                lists[name].append(value)
        for kind, index in senses:
            for name, value in (("sense_kind", kind), ("sense_index", index), ("sense_node", node)):
                lists[name].append(value)
            node += _width(kind)
        self._add_aims(group, last)
        counts["n_nets"] += 1
        counts["n_nodes"] += sum(sizes)
        counts["n_senses"] += len(senses)
        return first

    def _add_aims(self, group: list[Row], node: int) -> None:
        is_brake = MODES[self.mode] == DISSIPATE
        for k, row in enumerate(group):
            for name, value in (
                ("aim_kind", TARGETS[self.target]), ("aim_index", row.index), ("aim_node", node + self.each * k),
                ("aim_mode", MODES[self.mode]), ("aim_rate", row.index if is_brake else -1),
                ("aim_floor", int(self.target not in SIGNED)),
            ):  # fmt: skip
                self.lists[name].append(value)
        self.counts["n_aims"] += len(group)
        self.counts["n_link_aims"] += len(group) if self.target == "link.force" else 0

    def _model(self, blueprint: Blueprint) -> Model:
        model, topology = self.model, self.model.topology
        tree = {**topology.tree, **self.lists, **self.counts}
        topology = replace(topology, tree=tree, pool={}, grafts=(*topology.grafts, blueprint))
        old = model.params["graft.weight"]
        new = first_weights(blueprint, self.network, self.counts["n_weights"] - old.shape[-1])
        weights = np.concatenate([old, np.broadcast_to(new, (*old.shape[:-1], len(new)))], -1)
        return Model(topology, {**model.params, "graft.weight": weights}, model._initial, model.batch)
