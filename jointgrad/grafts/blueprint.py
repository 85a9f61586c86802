"""Networks as part of a model: what they see, what they change, and where their weights are (NeuralSim, Heiden 2021).

    model = jg.graft(model, "joint.force", ["joint.position", "joint.velocity"], jg.MLP((8, 8)))

gives a model with a network at every joint; its weights are the parameter "graft.weight", with gradients like any other.

`table()` prints what may be changed and seen. per="each": one network per row of the target, which sees inputs of the same joint
alone, or with sees="all" those of the whole robot; per="whole": one network that sees all inputs and speaks to all rows. Those on
contact.* run once for every point that touches between the shapes of their row. What cannot be negative (mass, damping, armature,
friction, restitution, the normal force, the medium's density) ends at zero. A graft sees what those before it have changed.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..model.arguments import (
    check_choice,
    check_flag,
    checked_count,
    checked_kind,
    checked_names,
    checked_number,
    is_whole,
    shown,
)
from ..model.arrays import FRICTION_ROW, IMPULSE, PRISMATIC, REVOLUTE, Model, checked_model
from ..model.errors import InputError
from ..model.grafts import (
    ACTIVATIONS,
    COUNTS,
    DISSIPATE,
    LISTS,
    MODES,
    SEE_CONTROL,
    SEE_DEPTH,
    SEE_LINK,
    SEE_NODE,
    SEE_NORMAL,
    SEE_PLACE,
    SEE_POSITION,
    SEE_RATE,
    SEE_SLIDING,
    TARGETS,
    WIDTHS,
)
from .weights import first_weights, layers, load_weights, save_weights, with_layers

__all__ = ["MLP", "Blueprint", "graft", "layers", "load_weights", "save_weights", "with_layers"]

# target -> one output per, what it is
ABOUT = {
    "joint.force": ("joint", "N or N m"),
    "joint.acceleration": ("joint", "m/s^2 or rad/s^2, once contact is solved"),
    "link.force": ("link, six outputs", "force and torque in the link's own axes, at its origin"),
    "link.mass": ("link", "kg, at the link's centre of mass"),
    "control": ("actuator", "what the actuator is asked for"),
    **{
        f"joint.{x}": ("joint", "the parameter, for this step")
        for x in ("damping", "stiffness", "armature", "friction")
    },
    **{f"actuator.{x}": ("actuator", "the same") for x in ("gain", "damping")},
    **{
        f"pair.{x}": ("row of pair parameters", "the same") for x in ("friction", "restitution", "stiffness", "damping")
    },
    **{f"world.{x}": ("world", "the same") for x in ("density", "viscosity")},
    "contact.depth": ("point that touches", "m; it is moved along the normal"),
    "contact.friction": ("point that touches", "coefficient of sliding"),
    "contact.restitution": ("point that touches, impulses", "coefficient"),
    "contact.stiffness": ("point that touches, springs", "the parameter"),
    "contact.damping": ("point that touches, springs", "the parameter"),
    "contact.normal_force": ("point that touches, springs", "N"),
    "contact.friction_force": ("point that touches, springs; two outputs", "N, along both tangents"),
    "signal": ("graft, as many outputs as the MLP says", "nothing; later networks may see it"),
}
# input -> how many numbers, what they are
INPUTS = {
    "joint.position": ("one per scalar joint", "m or rad"),
    "joint.velocity": ("one per scalar joint", "m/s or rad/s"),
    "control": ("one per actuator", "as earlier grafts left it"),
    "link.velocity": ("six per link", "of its origin, then angular, in its own axes"),
    "signal": ("all of earlier signals", "what their networks said"),
    "contact.depth": ("one", "m"),
    "contact.velocity": ("four", "m/s: parting, along both tangents, and the speed along the surface"),
    "contact.normal": ("three", "in the world, from the second shape to the first"),
    "contact.place": ("three", "m, on the first shape's link, in its axes"),
}
# targets that may be negative; the others end at zero, whatever a network says
SIGNED = (
    "joint.force", "joint.acceleration", "link.force", "control", "joint.stiffness", "actuator.gain", "actuator.damping",
    "contact.depth", "contact.friction_force",
)  # fmt: skip
OUTPUTS = {"link.force": 6, "contact.friction_force": 2}  # of one row, where there are several
# targets that only one kind of contact law has
OF_SPRINGS = ("contact.stiffness", "contact.damping", "contact.normal_force", "contact.friction_force")
OF_IMPULSES = ("contact.restitution",)
FORCES_AT_POINTS = ("contact.normal_force", "contact.friction_force")
KEPT_FORCE = 3  # numbers that the engine keeps of a force before it is changed
CONTACT_SENSES = {
    "contact.depth": SEE_DEPTH, "contact.velocity": SEE_SLIDING, "contact.normal": SEE_NORMAL, "contact.place": SEE_PLACE,
}  # fmt: skip


def table() -> str:
    """Targets and inputs, as Markdown."""
    lines = ["| target | one output per | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {per} | {meaning} |" for name, (per, meaning) in ABOUT.items()]
    lines += ["", "| input | numbers | |", "|---|---|---|"]
    lines += [f"| `{name}` | {count} | {meaning} |" for name, (count, meaning) in INPUTS.items()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class MLP:
    """Layers of a network: sizes of the hidden ones, their activation, and how large its last weights are at first (0: zero)."""

    hidden: Sequence[int] = (8, 8)
    activation: str = "tanh"
    scale: float = 1.0
    seed: int = 0
    outputs: int = 1  # of a signal; other targets say themselves how many they take


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
    signals: tuple[int, ...] = ()  # nodes that later networks may see

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
    checked_model(model)
    network = MLP() if network is None else checked_kind("network", network, MLP, "as jg.MLP(...) gives")
    check_flag("shared", shared)
    inputs = checked_names("inputs", inputs, INPUTS, "input")
    _check(model, target, inputs, network, per, mode)
    check_choice("sees", sees, ("own", "all"))
    if per == "whole" and is_at_points(target):
        raise InputError(
            f'a network on "{target}" speaks to one point at a time; for the same weights everywhere say shared=True'
        )
    found = [] if target == "signal" else _rows(model, target, rows)
    groups = [found] if per == "whole" or target == "signal" else [[row] for row in found]
    built = _Builder(model, target, tuple(inputs), network, mode, shared, sees == "all").built(groups)
    asked = {
        "target": target, "inputs": tuple(inputs), "network": network, "rows": None if rows is None else tuple(rows),
        "per": per, "sees": sees, "mode": mode, "shared": shared,
    }  # fmt: skip
    return _noted(built, asked)


def _noted(model: Model, asked: dict[str, Any]) -> Model:
    """With this graft in the recipe of the model."""
    recipe = model.topology.recipe
    if recipe is None:
        return model
    recipe = replace(recipe, grafts=(*recipe.grafts, asked))
    return Model(replace(model.topology, recipe=recipe), model.params, model._initial, model.batch)


def is_at_points(target: str) -> bool:
    return target.startswith("contact.")


def _check(model: Model, target: str, inputs: Sequence[str], network: MLP, per: str, mode: str) -> None:
    check_choice("target", target, ABOUT)
    check_choice("mode", mode, MODES)
    check_choice("activation", network.activation, ACTIVATIONS)
    check_choice("per", per, ("each", "whole"))
    checked_number("scale", network.scale)
    checked_count("seed", network.seed)
    if not inputs:
        raise InputError("inputs is empty, but a graft needs at least one input")
    if MODES[mode] == DISSIPATE and target != "joint.force":
        raise InputError(f'mode "dissipate" brakes joint forces, but the target is "{target}"')
    if MODES[mode] != MODES["residual"] and target in ("link.force", "signal"):
        raise InputError(f'a graft on "{target}" can only be residual, but mode is "{mode}"')
    at_points = [one for one in inputs if one in CONTACT_SENSES]
    if at_points and not is_at_points(target):
        raise InputError(f'only networks on contact.* see "{at_points[0]}", but the target is "{target}"')
    if network.outputs != 1 and target != "signal":
        raise InputError(f'outputs of MLP is for the target "signal"; "{target}" says itself how many it takes')
    is_row = isinstance(network.hidden, list | tuple | np.ndarray)
    if not is_row or any(not is_whole(n) or n < 1 for n in (*network.hidden, network.outputs)):
        raise InputError(
            f"sizes of MLP must be whole numbers from 1 on, but are hidden {shown(network.hidden)}, outputs {network.outputs}"
        )


def _rows(model: Model, target: str, patterns: Sequence[str] | None) -> list[Row]:
    tree, kind = model.topology.tree, target.partition(".")[0]
    if kind == "joint":
        scalar = _scalar_bodies(tree)
        per_dof = target in ("joint.force", "joint.acceleration")
        index = {b: tree["dof"][b] if per_dof else tree["frame"][b] for b in scalar}
        found = [Row(model.joint_names[tree["frame"][b]], index[b], body=b) for b in scalar]
    elif kind == "link":
        found = [Row(n, j, link=j) for j, n in enumerate(model.link_names) if tree["link_body"][j] < tree["n_bodies"]]
    elif kind == "contact":
        found = [Row(n, j) for j, n in enumerate(model.pair_names) if _has_law(tree, target, j)]
    elif kind == "pair":
        found = [Row(n, j) for j, n in enumerate(model.pair_names)]
    elif kind == "world":
        found = [Row("world", 0)]
    else:
        found = [Row(n, a, actuator=a) for a, n in enumerate(model.actuator_names)]
    if patterns is not None:
        patterns = (patterns,) if isinstance(patterns, str) else patterns
        if (
            not isinstance(patterns, list | tuple | set)
            or not all(isinstance(p, str) for p in patterns)
            or not patterns
        ):
            raise InputError(f"rows must be names or patterns, but is {shown(patterns)}")
        chosen = [r for r in found if any(fnmatch.fnmatchcase(r.name, p) for p in patterns)]
        lost = [p for p in patterns if not any(fnmatch.fnmatchcase(r.name, p) for r in found)]
        if lost:
            raise InputError(
                f'rows: "{lost[0]}" matches no row of {target}; the names are {", ".join(r.name for r in found)}'
            )
        found = chosen
    if not found:
        raise InputError(f'there is nothing for a graft on "{target}" in this model')
    if target == "joint.friction":
        _need_friction(model, found)
    return found


def _has_law(tree: Mapping[str, Any], target: str, row: int) -> bool:
    """Whether the pairs of a row have a law with this quantity."""
    laws = {law for law, r in zip(tree["pair_law"], tree["pair_row"], strict=True) if r == row}
    if target in OF_SPRINGS:
        return laws not in (set(), {IMPULSE})
    return bool(laws) and (target not in OF_IMPULSES or IMPULSE in laws)


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
    return WIDTHS.get(sense, 1)


class _Builder:
    """Appends one graft to the lists of a model."""

    def __init__(
        self, model: Model, target: str, inputs: tuple[str, ...], network: MLP, mode: str, shared: bool, sees_all: bool
    ) -> None:
        self.model, self.target, self.inputs, self.sees_all = model, target, inputs, sees_all
        self.network, self.mode, self.shared = network, mode, shared
        self.each = OUTPUTS.get(target, 1)  # outputs for one row
        self.at_points = is_at_points(target)
        self.signals: tuple[int, ...] = ()
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
        firsts: list[int] = []
        sizes: tuple[int, ...] = ()
        for group, senses, n_in in zip(groups, seen, widths, strict=True):
            sizes = (n_in, *self.network.hidden, self.each * len(group) or self.network.outputs)
            firsts.append(self._add_network(sizes, senses, group, firsts))
        if self.at_points:
            # one after the other in time, as only one of them is for a point: they use the same nodes
            self.counts["n_point_nodes"] += sum(sizes)
            self.counts["n_point_kept"] += KEPT_FORCE if self.target in FORCES_AT_POINTS else 1
            self.counts["n_point_nets"] += len(groups)
            self.counts["n_point_forces"] += len(groups) * (self.target in FORCES_AT_POINTS)
        blueprint = Blueprint(
            self.target, self.inputs, tuple(r.name for g in groups for r in g), sizes, self.network.activation, self.mode,
            tuple(firsts), tuple(tuple(self._names(senses)) for senses in seen), self.signals,
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
            elif kind in CONTACT_SENSES.values():
                name = next(name for name, one in CONTACT_SENSES.items() if one == kind)
                names += [f"{name}[{k}]" for k in range(_width(kind))] if _width(kind) > 1 else [name]
            elif kind == SEE_NODE:
                names.append(f"signal[{i}]")
            elif kind == SEE_CONTROL:
                names.append(f"control[{model.actuator_names[i]}]")
            else:
                names.append(f"joint.position[{at_q[i]}]" if kind == SEE_POSITION else f"joint.velocity[{at_dof[i]}]")
        return names

    def _senses(self, group: list[Row]) -> list[tuple[int, int]]:
        """What a network sees: of its own joint, link or actuator where the target has one and it shall, else everything."""
        tree, model = self.model.topology.tree, self.model
        row = group[0] if group else Row("signal", -1)
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
            "signal": [(SEE_NODE, node) for g in model.topology.grafts for node in g.signals],
            **{name: [(kind, -1)] for name, kind in CONTACT_SENSES.items()},
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
        node = counts["n_point_nodes"] if self.at_points else counts["n_nodes"]
        last = node + sum(sizes[:-1])
        if self.target == "signal":
            self.signals = tuple(range(last, last + sizes[-1]))
        for name, value in (
            ("net_weight", first), ("net_node", node), ("net_layer", len(lists["layer_in"])), ("net_layers", len(sizes) - 1),
            ("net_row", group[0].index if self.at_points else -1), ("net_sense", counts["n_senses"]),
            ("net_senses", len(senses)), ("net_aim", counts["n_aims"]), ("net_aims", len(group)),
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
        counts["n_nodes"] += 0 if self.at_points else sum(sizes)
        counts["n_senses"] += len(senses)
        return first

    def _add_aims(self, group: list[Row], node: int) -> None:
        is_brake = MODES[self.mode] == DISSIPATE
        for k, row in enumerate(group):
            for name, value in (
                ("aim_kind", TARGETS[self.target]), ("aim_index", row.index), ("aim_node", node + self.each * k),
                ("aim_mode", MODES[self.mode]), ("aim_rate", row.index if is_brake else -1),
                ("aim_floor", int(self.target not in SIGNED)),
                ("aim_kept", self.counts["n_point_kept"] if self.at_points else -1),
            ):  # fmt: skip
                self.lists[name].append(value)
        self.counts["n_aims"] += len(group)
        for name, target in (
            ("n_link_aims", "link.force"),
            ("n_mass_aims", "link.mass"),
            ("n_rate_aims", "joint.acceleration"),
        ):
            self.counts[name] += len(group) if self.target == target else 0

    def _model(self, blueprint: Blueprint) -> Model:
        model, topology = self.model, self.model.topology
        tree = {**topology.tree, **self.lists, **self.counts}
        topology = replace(topology, tree=tree, grafts=(*topology.grafts, blueprint))
        old = model.params["graft.weight"]
        new = first_weights(blueprint, self.network, self.counts["n_weights"] - old.shape[-1])
        weights = np.concatenate([old, np.broadcast_to(new, (*old.shape[:-1], len(new)))], -1)
        return Model(topology, {**model.params, "graft.weight": weights}, model._initial, model.batch)
