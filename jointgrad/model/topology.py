"""From lists to arrays: the integers of a Topology and the numbers of Params."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import (
    DAMPER,
    FIXED,
    FREE,
    N_DOF,
    N_Q,
    PARAMS,
    POSITION,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TORQUE,
    VELOCITY,
    Topology,
)
from .candidates import candidate_pairs, overlapping_pairs
from .constraint_rows import joint_blocks
from .contact_pairs import PAIR_OPTIONS, Default, PairRules, Rule
from .contact_shapes import shapes_of, warn_of_shapes
from .contacts import Contacts, contact_arrays, list_pairs, warn_of_overlaps
from .description import Actuator, Tendon
from .errors import ModelError
from .grafts import no_grafts
from .laws import Implicit, Impulse, Law
from .loops import list_loops, pairs_of_files
from .parts import Frame, PlacedRobot, WorldParts
from .ranges import unit, unit_quaternion
from .trees import tree_arrays

if TYPE_CHECKING:
    from .world import World


@dataclass
class Plan:
    """What `compile` was asked about contact."""

    contact: Law | None
    constraints: bool
    max_contacts: int | None
    rules: list[Rule]


def _moving(frames: list[Frame]) -> list[int]:
    """Frames whose joint moves, nearest to the root first: neighbours in this order seldom wait for each other, which
    lets the processor overlap them. Coordinates keep the order of the description."""
    depth: list[int] = []
    for f in frames:
        depth.append((0 if f.parent is None else depth[f.parent]) + (f.kind != FIXED))
    return sorted((i for i, f in enumerate(frames) if f.kind != FIXED), key=lambda i: depth[i])


def bodies_of(parts: WorldParts) -> list[int]:
    """The body that each frame moves with: its own if its joint moves, else its parent's; the world is len(bodies)."""
    moving = _moving(parts.frames)
    own = {frame: body for body, frame in enumerate(moving)}
    found: list[int] = []
    for i, f in enumerate(parts.frames):
        found.append(own[i] if i in own else (len(moving) if f.parent is None else found[f.parent]))
    return found


def topology_of(
    parts: WorldParts, frame_body: list[int], integrator: int, plan: Plan, placed: list[PlacedRobot]
) -> tuple[Topology, Contacts]:
    frames, n_frames = parts.frames, len(parts.frames)
    moving = _moving(frames)
    n = len(moving)
    kind = [frames[i].kind for i in moving]
    parent = [n if (p := frames[i].parent) is None else frame_body[p] for i in moving]
    carrying = set(parent)
    first_q = np.cumsum([0] + [N_Q[f.kind] for f in frames])
    first_dof = np.cumsum([0] + [N_DOF[f.kind] for f in frames])
    terms, tendon_first = _terms(parts, first_q, first_dof)
    numbers = {name: k for k, (name, _, _) in enumerate(parts.tendons)}
    drives = [_drive(name, target, a, parts, first_q, first_dof, numbers) for name, target, a in parts.actuators]
    of_joints = [a for a, d in enumerate(drives) if d[3] < 0]
    of_tendons = [a for a, d in enumerate(drives) if d[3] >= 0]
    tree: dict[str, Any] = {
        "n_frames": n_frames, "n_links": len(parts.links), "n_bodies": n, "n_dofs": int(first_dof[-1]), "n_q": int(first_q[-1]),
        "n_actuators": len(drives), "integrator": integrator,
        "frame_parent": [n_frames if f.parent is None else f.parent for f in frames],
        "frame_kind": [f.kind for f in frames], "frame_body": frame_body,
        "link_frame": [f for _, _, f in parts.links], "link_body": [frame_body[f] for _, _, f in parts.links],
        "parent": parent, "kind": kind, "frame": moving, "q": first_q[moving].tolist(), "dof": first_dof[moving].tolist(),
        "n_dof": [N_DOF[k] for k in kind], "reference": _references(parent, kind),
        "is_last": [int(N_DOF[kind[b]] == 1 and b not in carrying) for b in range(n)],
        "actuator_kind": [d[0] for d in drives], "actuator_dof": [d[1] for d in drives], "actuator_q": [d[2] for d in drives],
        "n_tendons": len(parts.tendons), "tendon_first": tendon_first, "actuator_tendon": [d[3] for d in drives],
        "n_joint_drives": len(of_joints), "joint_drive": of_joints, "n_tendon_drives": len(of_tendons), "tendon_drive": of_tendons,
        "term_dof": [dof for dof, _, _ in terms], "term_q": [q for _, q, _ in terms],
    }  # fmt: skip
    tree |= tree_arrays(tree) | no_grafts()
    contacts = _contacts(parts, frame_body, tree, plan, placed, first_q, first_dof)
    tree |= contact_arrays(contacts, tree, plan.contact, plan.max_contacts)
    if isinstance(plan.contact, Implicit):
        contacts.tie_compliance = plan.contact.compliance
    number = {name: j for j, (name, _, _) in enumerate(parts.links)}
    tree["shape_link"] = [number.get(s.link, -1) for s in contacts.shapes]
    dof_names = [f.name if N_DOF[f.kind] == 1 else f"{f.name}[{j}]" for f in frames for j in range(N_DOF[f.kind])]
    topology = Topology(
        tree,
        tuple(name for name, _, _ in parts.links),
        tuple(f.name for f in frames),
        tuple(name for name, _, _ in parts.actuators),
        tuple(dof_names),
        tuple(s.name for s in contacts.shapes),
        tuple(contacts.row_names),
        tuple(name for name, _, _ in parts.tendons),
        tuple((j, replace(shape)) for j, (_, link, _) in enumerate(parts.links) for shape in link.shapes),
    )
    return topology, contacts


def _contacts(
    parts: WorldParts,
    frame_body: list[int],
    tree: dict[str, Any],
    plan: Plan,
    placed: list[PlacedRobot],
    first_q: Any,
    first_dof: Any,
) -> Contacts:
    """Shapes that touch, pairs of them, and ties, as the world and its files say."""
    contacts = Contacts()
    has_partners = any(rule.contact is not None and rule.contact is not Default for rule in plan.rules)
    contacts.shapes, left_out = shapes_of(parts.links, frame_body, plan.contact is not None or has_partners)
    moving = any(s.body < tree["n_bodies"] for s in contacts.shapes)
    warn_of_shapes(left_out if moving or plan.contact is not None else {})
    excluded, explicit = pairs_of_files(placed, contacts.shapes)
    mimics = list_loops(parts, frame_body, tree, contacts, placed) if plan.constraints else {}
    pairs = candidate_pairs(contacts.shapes)
    deep = overlapping_pairs(contacts.shapes, tree, contacts.ties, parts, pairs) if len(pairs) else set()
    missed = list_pairs(contacts, tree, PairRules([*excluded, *plan.rules], plan.contact, explicit, deep), pairs)
    warn_of_overlaps(contacts.overlapping)
    asked = [f'"{r.first}" and "{r.second}"' for r in plan.rules]
    lost = [names for names in missed if names in asked and plan.contact is not None]
    if lost:
        listed = ", nor ".join(lost)
        raise ModelError(f"no two shapes that could touch are called {listed}; names are those of links and shapes")
    if plan.constraints:
        contacts.ties = joint_blocks(parts.frames, frame_body, first_q, first_dof, tree, mimics) + contacts.ties
    return contacts


def _drive(
    name: str, target: str, actuator: Actuator, parts: WorldParts, first_q: Any, first_dof: Any, numbers: dict[str, int]
) -> tuple[int, int, int, int]:
    """Kind, degree of freedom and coordinate, or else tendon, of an actuator."""
    code = {"torque": TORQUE, "position": POSITION, "velocity": VELOCITY, "damper": DAMPER}[actuator.kind]
    dof = q = tendon = -1
    if actuator.tendon:
        tendon = numbers[target]
        has_length = all(has for _, _, has in _terms_of(*parts.tendons[tendon], parts, first_q, first_dof))
    else:
        dof, q, has_length = _coordinate(f'actuator "{name}"', target, actuator.component, parts, first_q, first_dof)
    if not has_length and (code == POSITION or actuator.bias[1]):
        what = "tendon" if actuator.tendon else "joint"
        raise ModelError(
            f'actuator "{name}" serves a position of {what} "{target}", which has no such coordinate; use torque or velocity'
        )
    return code, dof, q, tendon


def _coordinate(
    owner: str, joint: str, component: int, parts: WorldParts, first_q: Any, first_dof: Any
) -> tuple[int, int, bool]:
    """Degree of freedom and coordinate of a joint's component, and whether the one is the other's rate."""
    frames = parts.frames
    dofs = [(i, k) for i in parts.frame_of_joint[joint] for k in range(N_DOF[frames[i].kind])]
    if not 0 <= component < len(dofs):
        raise ModelError(
            f'{owner} drives component {component} of joint "{joint}", which has {len(dofs)} degrees of freedom'
        )
    i, k = dofs[component]
    is_turn = frames[i].kind == SPHERICAL or (frames[i].kind == FREE and k >= 3)
    return int(first_dof[i]) + k, int(first_q[i]) + (0 if is_turn else k), not is_turn


def _terms_of(
    name: str, prefix: str, tendon: Tendon, parts: WorldParts, first_q: Any, first_dof: Any
) -> list[tuple[int, int, bool]]:
    """Degree of freedom and coordinate of each term of a tendon, and whether the one is the other's rate."""
    owner = f'tendon "{name}"'
    found = [
        _coordinate(owner, prefix + joint, component, parts, first_q, first_dof)
        for joint, _, component in tendon.full_terms()
    ]
    if tendon.stiffness and not all(has for _, _, has in found):
        raise ModelError(
            f"{owner} has stiffness and runs over a turn, which has no coordinate; leave its stiffness zero"
        )
    return found


def _terms(parts: WorldParts, first_q: Any, first_dof: Any) -> tuple[list[tuple[int, int, bool]], list[int]]:
    """Terms of all tendons in a row, and where each tendon's begin."""
    each = [_terms_of(*tendon, parts, first_q, first_dof) for tendon in parts.tendons]
    return [term for terms in each for term in terms], [0, *(int(n) for n in np.cumsum([len(terms) for terms in each]))]


def _references(parent: list[int], kind: list[int]) -> list[int]:
    """Per body, the body whose position is its tree's reference point: the first that is not just slid along."""
    n = len(parent)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for b, p in enumerate(parent):
        children[p].append(b)
    reference = list(range(n + 1))
    for b, p in enumerate(parent):
        if p == n:
            at = b
            while kind[at] == PRISMATIC and len(children[at]) == 1:
                at = children[at][0]
            reference[b] = at
        else:
            reference[b] = reference[p]
    return reference


def params_of(
    parts: WorldParts, topology: Topology, world: World, dt: float, contacts: Contacts
) -> dict[str, np.ndarray]:
    links, frames, drives = [k for _, k, _ in parts.links], parts.frames, [a for _, _, a in parts.actuators]
    tendons = [t for _, _, t in parts.tendons]

    def of_joint(what: str) -> list[float]:
        return [0.0 if f.joint is None or f.kind == FIXED else getattr(f.joint, what) for f in frames]

    rest = [np.atleast_1d(f.rest) for f in frames if f.kind != FIXED]
    values = {
        "link.mass": [k.mass for k in links], "link.com": [k.com for k in links], "link.inertia": [k.inertia for k in links],
        "link.drag_size": [k.drag_size for k in links],
        "link.drag_placement": [
            (*k.drag_position, *unit_quaternion(k.name, "drag_orientation", k.drag_orientation)) for k in links
        ],
        "joint.placement": [(*f.position, *unit_quaternion(f.name, "orientation", f.orientation)) for f in frames],
        "joint.axis": [_unit_axis(f) for f in frames],
        "joint.damping": of_joint("damping"), "joint.stiffness": of_joint("stiffness"), "joint.armature": of_joint("armature"),
        "joint.rest": np.concatenate(rest) if rest else [],
        "joint.friction": of_joint("friction"), "joint.limit": [_limit(f) for f in frames],
        "joint.mimic": [f.mimic for f in frames],
        "shape.size": [s.size for s in contacts.shapes], "shape.placement": [s.placement for s in contacts.shapes],
        **{f"pair.{what}": [row[what] for row in contacts.rows] for what in PAIR_OPTIONS},
        "actuator.gain": [a.gain for a in drives], "actuator.damping": [a.damping for a in drives],
        "actuator.bias": [a.bias for a in drives], "actuator.gear": [a.gear for a in drives],
        "actuator.control_limit": [a.control_limit for a in drives],
        "actuator.force_limit": [a.force_limit for a in drives],
        "tendon.stiffness": [t.stiffness for t in tendons], "tendon.damping": [t.damping for t in tendons],
        "tendon.rest": [t.rest for t in tendons],
        "tendon.coefficient": [coefficient for t in tendons for _, coefficient, _ in t.full_terms()],
        "world.gravity": world.gravity, "world.dt": dt, "world.density": world.density, "world.viscosity": world.viscosity,
        "world.baumgarte": Impulse.baumgarte, "world.compliance": contacts.tie_compliance, "world.softness": Impulse.softness,
        "world.limit_margin": Impulse.margin,
        "graft.weight": [],
    }  # fmt: skip
    assert values.keys() == PARAMS.keys()
    return {name: np.array(v, dtype=np.float64).reshape(topology.shape_of(name)) for name, v in values.items()}


def _limit(frame: Frame) -> tuple[float, float]:
    is_limited = frame.joint is not None and frame.joint.kind in ("revolute", "prismatic") and frame.kind != FIXED
    low, high = frame.joint.limit if frame.joint is not None and is_limited else (-np.inf, np.inf)
    return float(low), float(high)


def _unit_axis(frame: Frame) -> np.ndarray:
    return unit(frame.axis) if frame.kind in (REVOLUTE, PRISMATIC) else np.array([0.0, 0.0, 1.0])


def start_of(parts: WorldParts) -> np.ndarray:
    values = [np.atleast_1d(np.asarray(f.initial, dtype=np.float64)) for f in parts.frames if f.kind != FIXED]
    return np.concatenate(values) if values else np.zeros(0)
