"""Several robots in one world; `compile` turns them into a Model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .arrays import (
    DAMPER,
    FIXED,
    FREE,
    INTEGRATORS,
    N_DOF,
    N_Q,
    PARAMS,
    POSITION,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TORQUE,
    VELOCITY,
    Model,
    Topology,
)
from .checks import check_actuator, check_joint, check_link, check_names, check_tendon, numbers, unit_quaternion
from .contacts import (
    PAIR_OPTIONS,
    Contacts,
    Default,
    Rule,
    contact_arrays,
    joint_ties,
    list_pairs,
    overlapping_pairs,
    shapes_of,
    tree_arrays,
    warn_of_overlaps,
    warn_of_shapes,
)
from .description import Actuator, Description, Joint, Link, Shape, Tendon
from .errors import ModelError, UnstableWarning, UnsupportedWarning, warn_caller
from .laws import Impulse, Law, Spring
from .loops import initial_poses, list_loops, pairs_of_files


@dataclass
class Frame:
    """One primitive joint and the frame it carries."""

    name: str
    kind: int
    parent: int | None
    joint: Joint | None = None
    position: Any = (0.0, 0.0, 0.0)
    orientation: Any = (1.0, 0.0, 0.0, 0.0)
    axis: Any = (0.0, 0.0, 1.0)
    initial: Any = 0.0
    rest: Any = 0.0
    mimic: tuple[float, float] = (0.0, 0.0)


@dataclass
class Placed:
    """A robot and where it stands in its world."""

    robot: Description
    prefix: str
    position: Sequence[float]
    orientation: Sequence[float]
    base: str

    def pose_of(self, joint: Joint) -> tuple[float, ...]:
        """Position and quaternion in the world of a joint that hangs on it."""
        return _pose_in_world(self, joint)


@dataclass
class _Listing:
    """The world as flat lists, in the order in which the engine will know them."""

    frames: list[Frame] = field(default_factory=list)
    links: list[tuple[str, Link, int]] = field(default_factory=list)
    frame_of_joint: dict[str, list[int]] = field(default_factory=dict)
    actuators: list[tuple[str, str, Actuator]] = field(default_factory=list)
    tendons: list[tuple[str, str, Tendon]] = field(default_factory=list)  # with the prefix of their robot


class World:
    """Robots, gravity (m/s^2), the medium around them (kg/m^3, Pa s), and the time step (s) and integrator that `compile`
    takes where it is given none."""

    def __init__(
        self,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        dt: float = 1e-3,
        integrator: str = "semi_implicit",
        density: float = 0.0,
        viscosity: float = 0.0,
    ) -> None:
        self.gravity, self.dt, self.integrator = gravity, dt, integrator
        self.density, self.viscosity = density, viscosity
        self.placed: list[Placed] = []
        self.rules: list[Rule] = []

    def add(
        self,
        robot: Description,
        name: str | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        base: str | None = None,
    ) -> World:
        """Put a robot into the world. With a name, its parts are called "name/part". base is "free" or "fixed"."""
        if not isinstance(robot, Description):
            raise ModelError(f"a world takes Descriptions, but got {type(robot).__name__}")
        base = base or robot.base
        if base not in ("free", "fixed"):
            raise ModelError(f'base must be "free" or "fixed", but is "{base}"')
        owner = f'robot "{name or robot.name}"'
        position = tuple(numbers(owner, "position", position, 3))
        orientation = unit_quaternion(owner, "orientation", orientation)
        self.placed.append(Placed(robot.copy(), f"{name}/" if name else "", position, orientation, base))
        return self

    def add_ground(
        self, friction: float | None = None, restitution: float = 0.0, height: float = 0.0, name: str = "ground"
    ) -> World:
        """A plane across z. Its friction is that of every pair it is in, where the other shape has no larger one."""
        ground = Description(name, base="fixed")
        shape = Shape("plane", (), (0.0, 0.0, height), friction=() if friction is None else (friction,))
        ground.add_link(name).shapes.append(shape)
        self.add(ground)
        return self.pair(name, "*", restitution=restitution) if restitution else self

    def pair(self, first: str, second: str, contact: Any = Default, **options: float) -> World:
        """Say how two shapes touch, by the names of shapes or links (patterns such as "dog/*" allowed); the last word counts.

        contact: a law, or None for pairs that shall not touch. Options: friction, torsion, rolling (m), restitution,
        stabilisation, softness, margin, push_limit; stiffness, damping, exponent, static_friction, transition of springs.
        """
        for option, value in options.items():
            if option not in PAIR_OPTIONS:
                raise ModelError(f'a pair has no "{option}"; it has {", ".join(PAIR_OPTIONS)}')
            if not numbers(f'the pair "{first}", "{second}"', option, value, None) >= 0:
                raise ModelError(f'{option} of the pair "{first}", "{second}" is {value}; it must be zero or more')
        _check_law(contact)
        self.rules.append(Rule(first, second, contact, {k: float(v) for k, v in options.items()}))
        return self

    def compile(
        self,
        dt: float | None = None,
        integrator: str | None = None,
        unphysical: str = "error",
        contact: Law | None = Impulse(),  # noqa: B008, a frozen value
        constraints: bool = True,
        max_contacts: int | None = None,
    ) -> Model:
        """A model with time step dt (s). Integrators: semi_implicit, explicit, rk4, implicit_damping.

        unphysical="warn" simulates inertias that no body can have, as real files often hold, with a warning. contact is the
        law of all pairs without one of their own; with None no shapes touch. constraints=False leaves out joint limits,
        dry friction, mimic joints and loops. max_contacts: room for points that touch at once.
        """
        is_asked, dt, integrator = integrator is not None, self.dt if dt is None else dt, integrator or self.integrator
        if unphysical not in ("error", "warn"):
            raise ModelError(f'unphysical must be "error" or "warn", but is {unphysical!r}')
        if integrator not in INTEGRATORS:
            raise ModelError(f'there is no integrator "{integrator}"; the names are {", ".join(INTEGRATORS)}')
        if not 0 < dt < np.inf:
            raise ModelError(f"dt must be more than zero and finite, but is {dt}")
        numbers("the world", "gravity", self.gravity, 3)
        for what in ("density", "viscosity"):
            if numbers("the world", what, getattr(self, what), None) < 0:
                raise ModelError(f"{what} of the world is negative ({getattr(self, what)}); it must be zero or more")
        listing = _Listing()
        for placed in self.placed:
            for link in placed.robot.links.values():
                check_link(link, unphysical)
            _list_robot(placed, listing)
        if not listing.links:
            raise ModelError("the world is empty: add a robot with at least one link before compiling")
        check_names("link", [name for name, _, _ in listing.links])
        check_names("joint", [f.name for f in listing.frames])
        check_names("actuator", [name for name, _, _ in listing.actuators])
        check_names("tendon", [name for name, _, _ in listing.tendons])
        _check_law(contact)
        bodies = _bodies(listing)
        plan = _Plan(contact, constraints, max_contacts, self.rules)
        topology, contacts = _topology(listing, bodies, INTEGRATORS[integrator], plan, self.placed)
        if topology.tree["has_impulses"] and integrator == "rk4":
            _refuse_impulses(is_asked)
            topology.tree["integrator"] = INTEGRATORS["semi_implicit"]  # type: ignore[index]
        params = _params(listing, topology, self, dt, contacts)
        _check_moving_mass(listing, topology, params)
        _check_inertias(listing, topology, params, integrator)
        return Model(topology, params, _initial(listing))


def _refuse_impulses(is_asked: bool) -> None:
    """Runge-Kutta steps are for smooth forces. A file's wish for them gives way to contact; the caller's own does not."""
    why = "this world has contacts, limits or dry friction, which act by impulses, and rk4 is for smooth forces"
    if is_asked:
        raise ModelError(
            f'{why}; take integrator="semi_implicit", or contact=jg.Spring() or None with constraints=False'
        )
    warn_caller(f'{why}: integrator="semi_implicit" is taken', UnsupportedWarning)


@dataclass
class _Plan:
    """What `compile` was asked about contact."""

    contact: Law | None
    constraints: bool
    max_contacts: int | None
    rules: list[Rule]


def _check_law(contact: Any) -> None:
    if contact is not None and contact is not Default:
        if not isinstance(contact, Impulse | Spring):
            raise ModelError(f"contact must be Impulse(...), Spring(...) or None, but is {contact!r}")
        contact.check()


# from robots to lists ---------------------------------------------------------------------------------------------------


def _list_robot(placed: Placed, listing: _Listing) -> None:
    robot, prefix = placed.robot, placed.prefix
    for joint in robot.joints.values():
        check_joint(joint, robot)
    joints_of: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        joints_of[joint.child].append(joint)
    children: dict[str | None, list[str]] = {name: [] for name in (*robot.links, None)}
    for child, joints in joints_of.items():
        parents = {j.parent for j in joints}
        if len(parents) > 1:
            named = ", ".join(f'"{p}"' for p in sorted(map(str, parents)))
            raise ModelError(f'link "{child}" has joints to several parents ({named}); a tree has one parent per link')
        children[parents.pop() if parents else None].append(child)
    seen: dict[str, int] = {}
    stack = list(reversed(children[None]))
    while stack:
        name = stack.pop()
        seen[name] = _list_link(placed, robot.links[name], joints_of[name], seen, listing)
        stack += reversed(children[name])
    lost = [name for name in robot.links if name not in seen]
    if lost:
        raise ModelError(
            f'robot "{robot.name}" has a cycle: link "{lost[0]}" is reached from no root; remove one joint of the loop'
        )
    for actuator in robot.actuators.values():
        check_actuator(actuator, robot)
        listing.actuators.append((prefix + actuator.name, prefix + (actuator.tendon or actuator.joint), actuator))
    for tendon in robot.tendons.values():
        check_tendon(tendon, robot)
        listing.tendons.append((prefix + tendon.name, prefix, tendon))


def _list_link(placed: Placed, link: Link, joints: list[Joint], seen: dict[str, int], listing: _Listing) -> int:
    """Frames of a link's joints, then the link; returns the frame that carries it."""
    prefix = placed.prefix
    if not joints:
        kind = FREE if placed.base == "free" else FIXED
        base = Frame(f"{prefix}{link.name}.base", kind, None, None, placed.position, placed.orientation)
        if kind == FREE:
            base.initial = base.rest = (*placed.position, *placed.orientation)
        listing.frames.append(base)
    for number, joint in enumerate(joints):
        parent = seen[joint.parent] if joint.parent is not None else None
        if number:
            parent = len(listing.frames) - 1
        elif joint.parent is None and joint.kind != "free":
            listing.frames.append(
                Frame(f"{prefix}{joint.name}.base", FIXED, None, None, placed.position, placed.orientation)
            )
            parent = len(listing.frames) - 1
        first = len(listing.frames)
        listing.frames += _primitives(joint, prefix, parent, first, placed)
        if any(joint.anchor) and joint.kind != "free":
            listing.frames.append(_back_from_anchor(joint, prefix, listing.frames))
        listing.frame_of_joint[prefix + joint.name] = list(range(first, len(listing.frames)))
    listing.links.append((prefix + link.name, link, len(listing.frames) - 1))
    return len(listing.frames) - 1


def _primitives(joint: Joint, prefix: str, parent: int | None, first: int, placed: Placed) -> list[Frame]:
    """The chain of primitive joints that a joint stands for."""
    name = prefix + joint.name
    if joint.kind in ("spherical", "free"):
        return [_turning(joint, name, parent, placed)]
    parts = _scalar_parts(joint)
    start, rest = _numbers(joint, len(parts))
    chain = []
    for k, (suffix, kind, axis) in enumerate(parts):
        frame = Frame(name + suffix, kind, parent if k == 0 else first + k - 1, joint, axis=axis)
        frame.initial, frame.rest = start[k], rest[k]
        chain.append(frame)
    chain[0].position, chain[0].orientation = joint.position, joint.orientation
    return chain


def _back_from_anchor(joint: Joint, prefix: str, frames: list[Frame]) -> Frame:
    """A joint that turns about a point of the child's frame: it is placed there, and the child's frame back from it."""
    first = next(f for f in frames if f.joint is joint)
    anchor = np.asarray(joint.anchor, dtype=np.float64)
    turn = _rotation(unit_quaternion(f'joint "{joint.name}"', "orientation", joint.orientation))
    first.position = tuple(np.asarray(joint.position, dtype=np.float64) + turn @ anchor)
    return Frame(f"{prefix}{joint.name}.anchor", FIXED, len(frames) - 1, None, tuple(-anchor))


def _scalar_parts(joint: Joint) -> list[tuple[str, int, Any]]:
    """What to append to the name, kind and axis of each primitive."""
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        return [(".x", PRISMATIC, x), (".y", PRISMATIC, y), (".turn", REVOLUTE, normal)]
    if joint.kind == "universal":
        return [(".first", REVOLUTE, joint.axis), (".second", REVOLUTE, joint.second_axis)]
    kind = {"fixed": FIXED, "prismatic": PRISMATIC}.get(joint.kind, REVOLUTE)
    return [("", kind, joint.axis)]


def _turning(joint: Joint, name: str, parent: int | None, placed: Placed) -> Frame:
    """A spherical or free joint; a free one starts, and rests, where the joint was placed."""
    start: tuple[float, ...]
    if joint.kind == "spherical":
        frame, start = Frame(name, SPHERICAL, parent, joint, joint.position, joint.orientation), (1.0, 0.0, 0.0, 0.0)
    else:
        frame, start = Frame(name, FREE, None, joint, joint.position, joint.orientation), _pose_in_world(placed, joint)
    for what, default in (("initial", start), ("rest", start)):
        given: Any = getattr(joint, what)
        value = default if given is None else tuple(given)
        if len(value) != N_Q[frame.kind]:
            raise ModelError(
                f'{what} of joint "{name}" has {len(value)} numbers, but a {joint.kind} joint has {N_Q[frame.kind]}'
            )
        setattr(frame, what, (*value[:-4], *unit_quaternion(f'joint "{name}"', what, value[-4:])))
    return frame


def _numbers(joint: Joint, count: int) -> tuple[list[float], list[float]]:
    """Initial and rest values of a joint with `count` coordinates."""
    out = []
    for what in ("initial", "rest"):
        value = getattr(joint, what)
        values = [0.0] * count if value is None else list(np.atleast_1d(np.asarray(value, dtype=np.float64)))
        if len(values) != count:
            raise ModelError(
                f'{what} of joint "{joint.name}" has {len(values)} numbers, but a {joint.kind} joint has {count}'
            )
        out.append([float(v) for v in values])
    return out[0], out[1]


def _rotation(quaternion: Any) -> np.ndarray:
    w, x, y, z = quaternion
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def _pose_in_world(placed: Placed, joint: Joint) -> tuple[float, ...]:
    position = np.asarray(placed.position) + _rotation(placed.orientation) @ np.asarray(
        joint.position, dtype=np.float64
    )
    a, b = (
        np.array(placed.orientation),
        np.array(unit_quaternion(f'joint "{joint.name}"', "orientation", joint.orientation)),
    )
    w = a[0] * b[0] - a[1:] @ b[1:]
    return (*position, w, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])))


def plane_axes(normal: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two directions of a plane and its normal; x, y, z for the normal z."""
    n = np.asarray(normal, dtype=np.float64) / np.linalg.norm(normal)
    x = np.array([1.0, 0, 0]) if abs(n[0]) < 0.9 else np.array([0, 1.0, 0])
    x = x - n * (n @ x)
    x /= np.linalg.norm(x)
    return x, np.cross(n, x), n


# from lists to arrays ---------------------------------------------------------------------------------------------------


def _moving(frames: list[Frame]) -> list[int]:
    """Frames whose joint moves, nearest to the root first: neighbours in this order seldom wait for each other, which
    lets the processor overlap them. Coordinates keep the order of the description."""
    depth: list[int] = []
    for f in frames:
        depth.append((0 if f.parent is None else depth[f.parent]) + (f.kind != FIXED))
    return sorted((i for i, f in enumerate(frames) if f.kind != FIXED), key=lambda i: depth[i])


def _bodies(listing: _Listing) -> list[int]:
    """The body that each frame moves with: its own if its joint moves, else its parent's; the world is len(bodies)."""
    moving = _moving(listing.frames)
    own = {frame: body for body, frame in enumerate(moving)}
    found: list[int] = []
    for i, f in enumerate(listing.frames):
        found.append(own[i] if i in own else (len(moving) if f.parent is None else found[f.parent]))
    return found


def _topology(
    listing: _Listing, frame_body: list[int], integrator: int, plan: _Plan, placed: list[Placed]
) -> tuple[Topology, Contacts]:
    frames, n_frames = listing.frames, len(listing.frames)
    moving = _moving(frames)
    n = len(moving)
    kind = [frames[i].kind for i in moving]
    parent = [n if (p := frames[i].parent) is None else frame_body[p] for i in moving]
    first_q = np.cumsum([0] + [N_Q[f.kind] for f in frames])
    first_dof = np.cumsum([0] + [N_DOF[f.kind] for f in frames])
    terms, tendon_first = _terms(listing, first_q, first_dof)
    drives = [_drive(name, target, a, listing, first_q, first_dof) for name, target, a in listing.actuators]
    of_joints = [a for a, d in enumerate(drives) if d[3] < 0]
    of_tendons = [a for a, d in enumerate(drives) if d[3] >= 0]
    tree: dict[str, Any] = {
        "n_frames": n_frames, "n_links": len(listing.links), "n_bodies": n, "n_dofs": int(first_dof[-1]), "n_q": int(first_q[-1]),
        "n_actuators": len(drives), "integrator": integrator,
        "frame_parent": [n_frames if f.parent is None else f.parent for f in frames],
        "frame_kind": [f.kind for f in frames], "frame_body": frame_body,
        "link_frame": [f for _, _, f in listing.links], "link_body": [frame_body[f] for _, _, f in listing.links],
        "parent": parent, "kind": kind, "frame": moving, "q": first_q[moving].tolist(), "dof": first_dof[moving].tolist(),
        "n_dof": [N_DOF[k] for k in kind], "reference": _references(parent, kind),
        "is_last": [int(N_DOF[kind[b]] == 1 and b not in parent) for b in range(n)],
        "actuator_kind": [d[0] for d in drives], "actuator_dof": [d[1] for d in drives], "actuator_q": [d[2] for d in drives],
        "n_tendons": len(listing.tendons), "tendon_first": tendon_first, "actuator_tendon": [d[3] for d in drives],
        "n_joint_drives": len(of_joints), "joint_drive": of_joints, "n_tendon_drives": len(of_tendons), "tendon_drive": of_tendons,
        "term_dof": [dof for dof, _, _ in terms], "term_q": [q for _, q, _ in terms],
    }  # fmt: skip
    tree |= tree_arrays(tree)
    contacts = _contacts(listing, frame_body, tree, plan, placed, first_q, first_dof)
    tree |= contact_arrays(contacts, tree, plan.contact, plan.max_contacts)
    number = {name: j for j, (name, _, _) in enumerate(listing.links)}
    tree["shape_link"] = [number.get(s.link, -1) for s in contacts.shapes]
    dof_names = [f.name if N_DOF[f.kind] == 1 else f"{f.name}[{j}]" for f in frames for j in range(N_DOF[f.kind])]
    topology = Topology(
        tree,
        tuple(name for name, _, _ in listing.links),
        tuple(f.name for f in frames),
        tuple(name for name, _, _ in listing.actuators),
        tuple(dof_names),
        tuple(s.name for s in contacts.shapes),
        tuple(contacts.row_names),
        tuple(name for name, _, _ in listing.tendons),
        tuple((j, replace(shape)) for j, (_, link, _) in enumerate(listing.links) for shape in link.shapes),
    )
    return topology, contacts


def _contacts(
    listing: _Listing,
    frame_body: list[int],
    tree: dict[str, Any],
    plan: _Plan,
    placed: list[Placed],
    first_q: Any,
    first_dof: Any,
) -> Contacts:
    """Shapes that touch, pairs of them, and ties, as the world and its files say."""
    contacts = Contacts()
    has_partners = any(rule.contact is not None and rule.contact is not Default for rule in plan.rules)
    contacts.shapes, left_out = shapes_of(listing.links, frame_body, plan.contact is not None or has_partners)
    moving = any(s.body < tree["n_bodies"] for s in contacts.shapes)
    warn_of_shapes(left_out if moving or plan.contact is not None else {})
    excluded, explicit = pairs_of_files(placed, contacts.shapes)
    mimics = list_loops(listing, frame_body, tree, contacts, placed) if plan.constraints else {}
    deep = overlapping_pairs(contacts.shapes, tree, contacts.ties, initial_poses(listing.frames))
    missed = list_pairs(contacts, tree, [*excluded, *plan.rules], plan.contact, deep, explicit)  # type: ignore[arg-type]
    warn_of_overlaps(contacts.overlapping)
    if missed and plan.contact is not None:
        missing = [m for m in missed[:1] if m in [f'"{r.first}" and "{r.second}"' for r in plan.rules]]
        if missing:
            raise ModelError(
                f"no two shapes that could touch are called {missing[0]}; names are those of links and shapes"
            )
    if plan.constraints:
        contacts.ties = joint_ties(listing.frames, frame_body, first_q, first_dof, tree, mimics) + contacts.ties
    return contacts


def _drive(
    name: str, target: str, actuator: Actuator, listing: _Listing, first_q: Any, first_dof: Any
) -> tuple[int, int, int, int]:
    """Kind, degree of freedom and coordinate, or else tendon, of an actuator."""
    code = {"torque": TORQUE, "position": POSITION, "velocity": VELOCITY, "damper": DAMPER}[actuator.kind]
    dof = q = tendon = -1
    if actuator.tendon:
        tendon = [n for n, _, _ in listing.tendons].index(target)
        has_length = all(has for _, _, has in _terms_of(*listing.tendons[tendon], listing, first_q, first_dof))
    else:
        dof, q, has_length = _coordinate(f'actuator "{name}"', target, actuator.component, listing, first_q, first_dof)
    if not has_length and (code == POSITION or actuator.bias[1]):
        what = "tendon" if actuator.tendon else "joint"
        raise ModelError(
            f'actuator "{name}" serves a position of {what} "{target}", which has no such coordinate; use torque or velocity'
        )
    return code, dof, q, tendon


def _coordinate(
    owner: str, joint: str, component: int, listing: _Listing, first_q: Any, first_dof: Any
) -> tuple[int, int, bool]:
    """Degree of freedom and coordinate of a joint's component, and whether the one is the other's rate."""
    kinds = [f.kind for f in listing.frames]
    dofs = [(i, k) for i in listing.frame_of_joint[joint] for k in range(N_DOF[kinds[i]])]
    if not 0 <= component < len(dofs):
        raise ModelError(
            f'{owner} drives component {component} of joint "{joint}", which has {len(dofs)} degrees of freedom'
        )
    i, k = dofs[component]
    is_turn = kinds[i] == SPHERICAL or (kinds[i] == FREE and k >= 3)
    return int(first_dof[i]) + k, int(first_q[i]) + (0 if is_turn else k), not is_turn


def _terms_of(
    name: str, prefix: str, tendon: Tendon, listing: _Listing, first_q: Any, first_dof: Any
) -> list[tuple[int, int, bool]]:
    """Degree of freedom and coordinate of each term of a tendon, and whether the one is the other's rate."""
    owner = f'tendon "{name}"'
    found = [
        _coordinate(owner, prefix + joint, component, listing, first_q, first_dof)
        for joint, _, component in tendon.full_terms()
    ]
    if tendon.stiffness and not all(has for _, _, has in found):
        raise ModelError(
            f"{owner} has stiffness and runs over a turn, which has no coordinate; leave its stiffness zero"
        )
    return found


def _terms(listing: _Listing, first_q: Any, first_dof: Any) -> tuple[list[tuple[int, int, bool]], list[int]]:
    """Terms of all tendons in a row, and where each tendon's begin."""
    each = [_terms_of(*tendon, listing, first_q, first_dof) for tendon in listing.tendons]
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


def _params(
    listing: _Listing, topology: Topology, world: World, dt: float, contacts: Contacts
) -> dict[str, np.ndarray]:
    links, frames, drives = [k for _, k, _ in listing.links], listing.frames, [a for _, _, a in listing.actuators]
    tendons = [t for _, _, t in listing.tendons]

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
        "world.stabilisation": Impulse.stabilisation, "world.softness": Impulse.softness, "world.limit_margin": Impulse.margin,
    }  # fmt: skip
    assert values.keys() == PARAMS.keys()
    return {name: np.array(v, dtype=np.float64).reshape(topology.shape_of(name)) for name, v in values.items()}


def _limit(frame: Frame) -> tuple[float, float]:
    is_limited = frame.joint is not None and frame.joint.kind in ("revolute", "prismatic") and frame.kind != FIXED
    low, high = frame.joint.limit if frame.joint is not None and is_limited else (-np.inf, np.inf)
    return float(low), float(high)


def _unit_axis(frame: Frame) -> np.ndarray:
    axis = np.asarray(frame.axis, dtype=np.float64)
    return axis / np.linalg.norm(axis) if frame.kind in (REVOLUTE, PRISMATIC) else np.array([0.0, 0.0, 1.0])


def _initial(listing: _Listing) -> np.ndarray:
    parts = [np.atleast_1d(np.asarray(f.initial, dtype=np.float64)) for f in listing.frames if f.kind != FIXED]
    return np.concatenate(parts) if parts else np.zeros(0)


def _check_inertias(listing: _Listing, topology: Topology, params: dict[str, np.ndarray], integrator: str) -> None:
    """What only the mass matrix shows, where the world starts: directions in which nothing resists, and joint damping or
    servos that are too stiff for the time step."""
    tree, poses = topology.tree, initial_poses(listing.frames)
    inertias = np.zeros((tree["n_bodies"] + 1, 6, 6))
    for j, (_, link, frame) in enumerate(listing.links):
        inertias[tree["link_body"][j]] += _inertia_about_origin(link, *poses[frame])
    stiffness = _stiffness(tree, params, integrator)
    for number, root in enumerate(tree["tree_root"]):
        members = [b for b in range(tree["n_bodies"]) if tree["body_tree"][b] == number]
        dofs = np.concatenate([np.arange(tree["dof"][b], tree["dof"][b] + tree["n_dof"][b]) for b in members])
        is_light = root >= 0 and np.linalg.matrix_rank(inertias[root]) < 6
        if not is_light and not stiffness[dofs].any():
            continue
        M = _mass_matrix(members, tree, inertias, poses, params)
        if is_light:
            _check_root(M, next(name for (name, _, f) in listing.links if tree["frame_body"][f] == root))
        _warn_of_stiffness(M, stiffness[dofs], [topology.dof_names[d] for d in dofs], params["world.dt"], integrator)


def _check_root(M: np.ndarray, name: str) -> None:
    """A free root without mass of its own moves with nothing in the directions that its joints leave open."""
    scale = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    if np.linalg.eigvalsh(M / np.outer(scale, scale))[0] < 1e-12:
        raise ModelError(
            f'the free link "{name}" has no mass or inertia of its own, and its joints leave it a direction in which nothing '
            'resists: it would be accelerated without limit; give it mass and inertia, or base="fixed"'
        )


def _stiffness(tree: Mapping[str, Any], params: dict[str, np.ndarray], integrator: str) -> np.ndarray:
    """2 dt c + dt^2 k of every degree of freedom that a step takes from its beginning, of dampers, springs and servos: a
    semi-implicit step of one joint of inertia m is stable below 4 m."""
    dt, total = float(params["world.dt"]), np.zeros(tree["n_dofs"])
    for frame, dof, n_dof in zip(tree["frame"], tree["dof"], tree["n_dof"], strict=True):
        c = 0.0 if integrator == "implicit_damping" else params["joint.damping"][frame]
        total[dof : dof + n_dof] += 2.0 * dt * c + dt * dt * params["joint.stiffness"][frame]
    for k, (kind, dof) in enumerate(zip(tree["actuator_kind"], tree["actuator_dof"], strict=True)):
        gain, gear, (_, per_q, per_rate) = (params[f"actuator.{w}"][k] for w in ("gain", "gear", "bias"))
        c = params["actuator.damping"][k] - per_rate + (gain if kind == VELOCITY else 0.0)
        total[dof] += gear**2 * (2.0 * dt * c + dt * dt * ((gain if kind == POSITION else 0.0) - per_q))
    return np.maximum(total, 0.0)


def _warn_of_stiffness(M: np.ndarray, stiffness: np.ndarray, names: list[str], dt: Any, integrator: str) -> None:
    """Largest eigenvalue of M^-1 (2 dt C + dt^2 K) against 4. Only the two integrators that take robots into contact."""
    if integrator not in ("semi_implicit", "implicit_damping") or not stiffness.any():
        return
    root = np.sqrt(stiffness)
    values, vectors = np.linalg.eigh(root[:, None] * np.linalg.pinv(M, hermitian=True) * root)
    if values[-1] > 4.0:
        joint = names[int(np.argmax(np.abs(vectors[:, -1])))]
        remedy = "a smaller dt, or armature" + (
            ', or integrator="implicit_damping"' if integrator == "semi_implicit" else ""
        )
        warn_caller(
            f'dampers, springs or servos at joint "{joint}" are {values[-1] / 4.0:.3g} times stiffer than steps of {float(dt):g} s '
            f"can follow: its rate will grow without limit; take {remedy}",
            UnstableWarning,
        )


def _inertia_about_origin(link: Link, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(6, 6), of [angular, linear] motion about the world's origin."""
    xx, xy, xz, yy, yz, zz = link.inertia
    at = p + R @ np.asarray(link.com, dtype=np.float64)
    cross = np.cross(np.eye(3), -at)
    turning = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T - link.mass * cross @ cross
    return np.block([[turning, link.mass * cross], [-link.mass * cross, link.mass * np.eye(3)]])


def _mass_matrix(
    members: list[int], tree: Mapping[str, Any], inertias: np.ndarray, poses: list, params: dict
) -> np.ndarray:
    """Of one tree; a free root moves about the world's origin."""
    axes: dict[int, np.ndarray] = {}
    for b in members:
        R, p = poses[tree["frame"][b]]
        along = R @ params["joint.axis"][tree["frame"][b]]
        columns = {
            REVOLUTE: [(*along, *np.cross(p, along))],
            PRISMATIC: [(0.0, 0.0, 0.0, *along)],
            SPHERICAL: [(*axis, *np.cross(p, axis)) for axis in np.eye(3)],
            FREE: np.eye(6),
        }
        axes[b] = np.array(columns[tree["kind"][b]]).T
    starts = dict(zip(members, np.cumsum([0] + [axes[b].shape[1] for b in members]), strict=False))
    M = np.zeros((sum(a.shape[1] for a in axes.values()),) * 2)
    for b in members:
        J, at = np.zeros((6, len(M))), b
        while at in axes:
            J[:, starts[at] : starts[at] + axes[at].shape[1]] = axes[at]
            at = tree["parent"][at]
        M += J.T @ inertias[b] @ J
        own = slice(starts[b], starts[b] + axes[b].shape[1])
        M[own, own] += params["joint.armature"][tree["frame"][b]] * np.eye(axes[b].shape[1])
    return M


def _check_moving_mass(listing: _Listing, topology: Topology, params: dict[str, np.ndarray]) -> None:
    """Every moving joint must carry inertia, or its acceleration would be infinite."""
    tree = topology.tree
    n = tree["n_bodies"]
    heavy = np.zeros(n + 1, dtype=bool)
    for j, (_, link, _) in enumerate(listing.links):
        heavy[tree["link_body"][j]] |= (
            link.mass > 0 or (tree["kind"] + [0])[tree["link_body"][j]] == REVOLUTE and any(link.inertia)
        )
    for b in range(n - 1, -1, -1):
        if heavy[b] or params["joint.armature"][tree["frame"][b]] > 0:
            heavy[tree["parent"][b]] |= heavy[b]
            continue
        frame = tree["frame"][b]
        carried = [name for (name, _, f) in listing.links if tree["frame_body"][f] == b]
        what = f'link "{carried[0]}"' if carried else "what it carries"
        raise ModelError(
            f'joint "{topology.joint_names[frame]}" moves {what}, which has no mass and carries none: it would be '
            "accelerated without limit; give the link a mass, make the joint fixed, or give it armature"
        )
