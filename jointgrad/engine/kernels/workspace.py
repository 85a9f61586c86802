"""Everything one step reads and computes on the way, grouped under the stage that writes it.

Widths are per row; rows are counted in `rows_of`. Spatial quantities are in world axes about the reference point of
their tree, the present position of `tree.reference`. A table X_bar holds the cotangents of table X, field by field; the
cotangent of a pose is the force that would do the work (6: torque, force), never nine entries of a rotation.
The last row of fields that have one row per body is the world itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compiler.field import CURSOR, INTEGERS, LIST, NUMBERS, SCALAR, Schema
from ...model.arrays import PARAMS as NAMED_PARAMS
from ...model.grafts import COUNTS, LISTS
from ...model.laws import SOLVERS
from ...model.pair_table import PAIR_KINDS, POINTS, is_searched
from ...model.state_fields import FURTHER, places, state_counts

# what the certificate keeps of a step: see margins.py
RECORD = (
    "margin", "margin_of", "mode_margin", "mode_margin_of", "gap", "gap_of", "open", "sticking", "slipping", "impulse", "change",
    "impact", "bounce", "signature", "limit", "limit_of",
)  # fmt: skip

# integrators, in the order of INTEGRATORS
SEMI_IMPLICIT, EXPLICIT, RK4, IMPLICIT_DAMPING = range(4)

TREE = {
    "n_frames": SCALAR, "n_links": SCALAR, "n_bodies": SCALAR, "n_dofs": SCALAR, "n_q": SCALAR, "n_actuators": SCALAR,
    "integrator": SCALAR, "n_more": SCALAR, "n_rates": SCALAR, "n_state": SCALAR,
    # frames: one per primitive joint, the fixed ones included; a frame moves with a body
    "frame_parent": INTEGERS, "frame_kind": INTEGERS, "frame_body": INTEGERS,
    # links: what carries mass
    "link_frame": INTEGERS, "link_body": INTEGERS,
    # bodies: what a moving joint carries. parent n_bodies is the world; frame is its joint; q and dof its first coordinate
    # and velocity; reference the body that marks the tree's reference point; is_last where it has one velocity and
    # carries no other body
    "parent": INTEGERS, "kind": INTEGERS, "frame": INTEGERS, "q": INTEGERS, "dof": INTEGERS, "n_dof": INTEGERS,
    "reference": INTEGERS, "is_last": INTEGERS,
    "actuator_kind": INTEGERS, "actuator_dof": INTEGERS, "actuator_q": INTEGERS,
    # trees: bodies that hang together. body_tree is n_trees for the world; root is a tree's free body, -1 where it has none;
    # dofs of a tree are neighbours; bodies of tree t are tree_body[tree_first[t]:tree_first[t + 1]]; path: the degrees of
    # freedom between a tree's root (if free, without it) and a body, path[path_first[b]:path_first[b] + path_length[b]]; place:
    # where a degree of freedom is in the paths that hold it
    "n_trees": SCALAR, "most_path": SCALAR, "most_dofs": SCALAR,
    "body_tree": INTEGERS, "tree_root": INTEGERS, "tree_dof": INTEGERS, "tree_first": INTEGERS, "tree_body": INTEGERS,
    "path": INTEGERS, "path_first": INTEGERS, "path_length": INTEGERS, "place": INTEGERS,
    # shapes that touch (shape_link is -1 for a mark); pairs of them, in runs of one kind of pair between two trees; pair_row is
    # the row in params.pair_*
    "n_shapes": SCALAR, "n_runs": SCALAR, "n_pairs": SCALAR, "n_pair_rows": SCALAR,
    "shape_frame": INTEGERS, "shape_body": INTEGERS, "shape_link": INTEGERS, "shape_kind": INTEGERS,
    # corners of meshes and heights of terrains, see model/bodies.py: where a shape's begin, how many rows and columns it has
    "number": NUMBERS, "shape_data": INTEGERS, "shape_rows": INTEGERS, "shape_columns": INTEGERS,
    "run_kind": INTEGERS, "run_first": INTEGERS, "run_tree_a": INTEGERS, "run_tree_b": INTEGERS,
    "has_tree_pairs": SCALAR, "pair_kind": INTEGERS, "pair_a": INTEGERS, "pair_b": INTEGERS, "pair_row": INTEGERS,
    "pair_law": INTEGERS, "pair_has_rows": INTEGERS, "pair_spins": INTEGERS,
    # rows that do not come from shapes, in blocks of three: see stages/contact/constraints.py
    "n_constraints": SCALAR, "constraint_kind": INTEGERS, "constraint_a": INTEGERS, "constraint_b": INTEGERS,
    "constraint_row": INTEGERS, "constraint_frame": INTEGERS, "constraint_dof": INTEGERS, "constraint_q": INTEGERS,
    "constraint_dof2": INTEGERS, "constraint_q2": INTEGERS,
    # impulses: who finds them, in how many sweeps, cone or pyramid; room for how many touches, blocks of rows and couplings
    "has_impulses": SCALAR, "has_soft_contact": SCALAR, "solver": SCALAR, "sweeps": SCALAR, "is_cone": SCALAR,
    "most_touches": SCALAR, "most_blocks": SCALAR, "most_couplings": SCALAR,
    # the convex law: whether it is asked for, iterations at most, whether sliding bodies stay level (convex_law.py); whether
    # numbers carry tangents. The chain of a degree of freedom: those before it that it moves with, a free root's six included
    "is_implicit": SCALAR, "iterations": SCALAR, "is_level": SCALAR, "has_tangents": SCALAR,
    "chain_first": INTEGERS, "chain": INTEGERS,
    # tendons: sums of coordinates. tendon_first is each one's first term, and at the end the number of terms
    "n_tendons": SCALAR, "tendon_first": INTEGERS, "term_dof": INTEGERS, "term_q": INTEGERS,
    # which actuators drive joints and which tendons, and of the latter the tendon
    "n_joint_drives": SCALAR, "joint_drive": INTEGERS, "n_tendon_drives": SCALAR, "tendon_drive": INTEGERS,
    "actuator_tendon": INTEGERS,
    # networks: where each one's weights, nodes and layers begin; what they see and which node it goes to (six for a link); what
    # they change, from which node, how, and the rate that a brake acts on (-1: none). See model/grafts.py
    **dict.fromkeys(COUNTS, SCALAR), **dict.fromkeys(LISTS, INTEGERS),
}  # fmt: skip

# every number a gradient may be asked for; joint.* rows are frames
PARAMS = {name.replace(".", "_"): width for name, width in NAMED_PARAMS.items()}

# choices of coordinates that no result depends on: a rotation that takes z to the joint axis, and that axis
AXIS_REFERENCE = {"rotation": 9, "axis": 3}

# assembly: what a rollout needs of the parameters, worked out once. frame_pose is of a frame in its body, placement of
# a joint in its parent body (z along the axis), com and drag box of a link and a shape in their body
ASSEMBLY = {"frame_pose": 12, "placement": 12, "inertia": 10, "com": 3, "drag": 12, "shape": 12}
ASSEMBLY_BAR = {"frame_pose": 6, "placement": 6, "inertia": 10, "com": 3, "drag": 6, "shape": 6}

# model/state_fields.py: what a step starts from (and controls, outside forces), what it leads to, and rates of what is integrated
# beside velocities; `all` is the state as one vector
STATE = {"q": 1, "qd": 1, "more": 1, **dict.fromkeys(FURTHER, 1), "all": 1, "u": 1, "force": 1}
NEXT = {"q": 1, "qd": 1, "more": 1, **dict.fromkeys(FURTHER, 1), "all": 1}
RATE = {"more": 1, **dict.fromkeys(FURTHER, 1)}

WORK = {
    # kinematics: pose in the world, arm from the reference point, axis S per dof, velocity, and the acceleration (less
    # gravity) if no joint accelerated
    "pose": 12, "arm": 3, "S": 6, "v": 6, "c": 6,
    # springs: per body, force of compliant contact
    "touch": 6,
    # tendons: per tendon, length, speed, and what pulls in it
    "length": 1, "speed": 1, "pull": 1,
    # forces: per dof, inertia that the joint itself adds; per dof, joint force; per body, outside force
    "armature": 1, "tau": 1, "f": 6,
    # articulated: rigid and articulated inertias, forces, and what elimination leaves per dof; free bodies' factors; what
    # the joints add to c
    "I": 10, "IA": 21, "pA": 6, "U": 6, "D_inv": 1, "u": 1, "factor": 21, "a_joints": 6, "qdd": 1,
    # contact: what impulses add to the rates
    "qd_jump": 1,
    # grafts: nodes of networks, what goes into their activations, and what their outputs stood in for
    "node": 1, "pre": 1, "kept": 1, "kept_inertia": 10,
}  # fmt: skip
WORK_BAR = {
    "pose": 6, "S": 6, "v": 6, "c": 6, "touch": 6, "length": 1, "speed": 1, "pull": 1, "armature": 1, "tau": 1, "f": 6,
    "qdd": 1, "qd_jump": 1, "node": 1, "kept": 1, "kept_inertia": 10,
}  # fmt: skip

GEOMETRY, SCRATCH = 24, 4450  # numbers of a row of geometry, and what a search works with: stages/detection/manifold.py

# detection: poses of shapes in the world, how far a tree reaches from its reference point, and the points that touch in
# some lane: between which pair, which of its candidates, where, along which normal (from shape b to shape a), how far apart;
# springs: the force on shape a; where networks stand at points: contact parameters of each point
TOUCH = {
    "shape": 12, "extent": 1, "point": 3, "normal": 3, "gap": 1, "feature": 7, "geometry": GEOMETRY, "force": 3,
    "friction": 1, "restitution": 1, "stiffness": 1, "damping": 1,
    "n": CURSOR, "is_full": CURSOR, "first": CURSOR, "last": CURSOR, "pair": LIST, "part": LIST, "scratch": NUMBERS,
}  # fmt: skip
# cotangents; of a shape's pose, a force about the shape's own position
TOUCH_BAR = {
    "shape": 6, "point": 3, "normal": 3, "gap": 1, "force": 3, "friction": 1, "restitution": 1, "stiffness": 1, "damping": 1,
}  # fmt: skip

# contact: blocks of three rows of the complementarity problem. Sides 2k and 2k + 1 of block k are what it pushes on:
# a body, where in the body's path its own effort begins, the free root it reaches (-1: none). Couplings of block k
# (blocks on a common tree, in order, itself included) are first[k]:first[k + 1]; mirror is the same coupling seen from
# the other block. members of a tree: the sides on it
BLOCK = {
    "n": CURSOR, "kind": LIST, "source": LIST, "body": LIST, "fork": LIST,
    "root": LIST, "first": LIST, "other": LIST, "mirror": LIST, "own": LIST, "seen": LIST, "member_first": LIST, "member": LIST,
    "hides": LIST,
    # rows as forces about the reference point, the effort they leave at each dof of the path, force at and motion of the
    # root, coefficients of ties
    "rows": 18, "effort": 3, "at_root": 18, "answer": 18, "weight": 3, "weight2": 3,
    # the problem A x + b, bounds, friction coefficients (sliding, torsion, rolling), step sizes; the sweeps x <- clamp(G x + start)
    # give: compliance, softness, lightness; soft: what they add to A's diagonal; approach: along the normal, before anything pulled
    "closing": 3, "approach": 1, "A": 9, "b": 3, "give": 3, "soft": 3, "low": 3, "high": 3, "friction": 3, "active": 3,
    "D": 3, "G": 9, "start": 3, "x": 4,
    # what the solver found: impulses along the rows, and of a point whether its friction holds (1) or slips (0)
    "impulse": 3, "sticks": 1,
    # where a bound is zero (hides is 1 if it is in some lane), from which side every sweep met it: impulses cannot tell
    "side": 3,
    # impulses on their way to the joints
    "pushed": 1, "motion": 6,
    # bounces: whether some lane has one, and whether some lane's was restrained (energy.py): by which share of the impulses, which
    # are kept whole here; what restrains them (what they may do, what they do to themselves, the largest restitution)
    "bounces": CURSOR, "restrained": CURSOR, "share": 1, "whole": 3, "balance": 3,
    # per tree, and of the world, what its mass adds to the answer of points (give.py)
    "lightness": 1,
    # the convex law (joint_space.py, newton.py). Columns of J, of blocks first[k]:first[k + 1], with their degree of freedom, and
    # times the gains; masses along chains, and the diagonal; H and its factor; neighbours of each degree of freedom before it
    "column_dof": LIST, "column": 3, "gained": 3, "composite": 10, "mass": 1, "own_mass": 1, "H": 1,
    "is_near": LIST, "near": LIST, "near_first": LIST, "near_last": LIST,
    # velocities along rows, along a step, gains (of turning on its point: cross), what sliding takes off; what impulses add to
    # the velocities (of a free root: its motion), momentum of that, the gradient, a step and its momentum
    "u": 3, "du": 3, "gain": 9, "cross": 9, "level": 1, "y": 1, "mass_y": 1, "gradient": 1, "step": 1, "mass_step": 1,
    # the squared gradient that is left, beside what is small enough
    "excess": 1,
    # how far the sweeps were from settled, smoothed over steps (settling.py): at worst, at present, and which pair
    "unsettled": 3,
}  # fmt: skip
BLOCK_BAR = {
    # wrench: what the contact forces among the outputs give the impulses
    "wrench": 3, "impulse": 3, "e": 3, "b": 3, "A": 9, "give": 3, "lightness": 1, "soft": 3, "closing": 3, "approach": 1,
    "demand": 3,
    "square": 1, "friction": 3, "low": 3, "high": 3, "free": 1, "rate": 1, "root": 6,
    # answers of every dof to every row, and their mixtures by A_bar + A_bar^T
    "Y": 3, "Y_body": 18, "W": 3, "W_root": 18, "composite": 10, "composite_bar": 10,
    # the convex law: multipliers of y, cotangent of the diagonal of M
    "y": 1, "own_mass": 1,
    # running sums on their way back, with the rates that they give; the same of cotangents
    "D": 3, "pushed": 1, "motion": 6, "speed": 1, "pulled": 1, "pulled_motion": 6, "pulled_speed": 1,
}  # fmt: skip
# what the reverse of forward dynamics needs on its own: multipliers per dof and per body; accelerations, forces and
# cotangents, some gathered up the tree
MULTIPLIER = {"mu": 1, "m": 6, "p": 6, "u": 1, "a": 6, "force": 6, "v_bar": 6, "a_bar": 6}

# named outputs of a rollout, per link
OUTPUT = {"position": 3, "rotation": 9, "velocity": 6, "force": 3, "torque": 3}

# how near a step was to another one: RECORD, of an evaluation and of all before it; the pairs' own margins while others stand
# in for them
MARGIN = {"record": len(RECORD), "own": 1}

# Runge-Kutta: the state at the start of the step, and state and acceleration of each of its four evaluations
RUNGE = {
    "q": 1,
    "qd": 1,
    "qdd": 1,
    "more": 1,
    "more_rate": 1,
    "chart": 1,
    "rate": 1,
    "q0": 1,
    "qd0": 1,
    "more0": 1,
    "wrench": 6,
}
RUNGE_BAR = {"q": 1, "qd": 1, "qdd": 1, "more": 1, "more_rate": 1, "chart": 1, "rate": 1, "part": 1, "wrench": 6}

# arrays of the caller for the parts of a state; call.start[0] is worker.set(q0=...)
PARTS = ("q", "qd", "more")
STATE_ARRAYS = {
    "start": "{}0", "start_dot": "{}0_dot", "kept": "{}", "kept_dot": "{}_dot", "last_state": "{}_last",
    "last_state_dot": "{}_last_dot",
    "state_bar": "{}_bar", "start_bar": "{}0_bar",
}  # fmt: skip

# what one call works on. Addresses of the caller's arrays are 0 where absent; X_dot is the tangent of X, X_bar its cotangent
CALL = {
    name: SCALAR
    for name in (
        # environments [first, last) of a batch, in chunks whose parameter cotangents are summed; steps of the motion
        "first", "last", "batch", "steps", "chunk", "assemble", "has_springs", "has_drag", "wants_params",
        "wants_outputs", "wants_wrenches",
        # states are kept every `interval` steps; a program reverses one interval, another the last, shorter one
        "interval", "program_length", "tail_length",
        "u", "force", "force_step", "status", "settling", "record", "u_dot", "force_dot",
        # cotangents are of every state (each = 1) or of the last one alone
        "each", "u_bar", "force_bar",
        "n_fields", "n_params", "n_assembly", "params_sum",
        "axis_reference_rotation", "axis_reference_axis", "axis_reference_is_shared",
    )
}  # fmt: skip
CALL |= {
    "program": INTEGERS,
    # of q, qd and more: how many numbers, and where they are: at the start, kept on the way, at the end; cotangents of those kept,
    # and of the start
    "state_size": INTEGERS, **dict.fromkeys(STATE_ARRAYS, INTEGERS), "nowhere": INTEGERS,
    # per parameter field: how many numbers, where, how far to the next environment's (0: shared)
    "param_size": INTEGERS, "param": INTEGERS, "param_dot": INTEGERS, "param_stride": INTEGERS, "param_bar": INTEGERS,
    "output": INTEGERS, "output_dot": INTEGERS, "output_bar": INTEGERS,
}  # fmt: skip

# one kernel per kind of pair and its reverse, compiled when a robot has such a pair
PAIR_KERNELS = tuple(f"{kind}_pairs{suffix}" for kind in PAIR_KINDS for suffix in ("", "_adjoint"))

SCHEMA = Schema(
    "engine",
    {
        "tree": TREE, "params": PARAMS | {"all": 1}, "params_bar": PARAMS | {"all": 1}, "axis_reference": AXIS_REFERENCE,
        "assembly": ASSEMBLY, "assembly_bar": ASSEMBLY_BAR | {"all": 1},
        "state": STATE, "state_bar": STATE, "work": WORK, "work_bar": WORK_BAR, "multiplier": MULTIPLIER,
        "touch": TOUCH, "touch_bar": TOUCH_BAR, "block": BLOCK, "block_bar": BLOCK_BAR,
        "output": OUTPUT, "output_bar": OUTPUT, "margin": MARGIN, "runge": RUNGE, "runge_bar": RUNGE_BAR,
        "next": NEXT, "next_bar": NEXT, "rate": RATE, "rate_bar": RATE,
        "slots": {"state": 1}, "spare": {"params": 1, "assembly": 1, "state": 1, "lost": 1}, "call": CALL,
        # where the time loop is: step, first environment of the pack, how many environments it holds; is_stopped is set from
        # outside while a kernel runs, and is looked at before every step
        "at": {"step": CURSOR, "env": CURSOR, "count": CURSOR, "is_stopped": CURSOR},
    },
    kernels=(
        "assembly_stage", "assembly_stage_adjoint",
        "kinematics", "kinematics_adjoint", "tendons", "tendons_adjoint", "forces", "forces_adjoint",
        "articulated", "articulated_adjoint", "grafts", "grafts_adjoint", "ungraft", "regraft", "grafted_forces",
        "grafted_forces_adjoint", "grafted_rates", "grafted_rates_adjoint", "point_grafts", "point_grafts_adjoint",
        "grafted_springs", "grafted_springs_adjoint",
        *PAIR_KERNELS, "detection", "detection_adjoint", "springs", "springs_adjoint",
        "blocks", "constraint_blocks", "couplings", "sweeps", "own_couplings", "matrix_free", "jumps",
        "restrain", "restrain_adjoint",
        "contact", "contact_adjoint", "columns", "masses", "neighbours", "factor", "newton", "implicit", "implicit_adjoint",
        "masses_adjoint",
        "sweeps_adjoint", "matrix_adjoint", "mixtures", "matrix_free_adjoint", "inertia_adjoint",
        "rows_adjoint", "constraints_adjoint", "contact_wrenches", "contact_wrenches_adjoint", "margins", "switches",
        "integration", "integration_adjoint", "outputs", "outputs_adjoint",
        "runge_kutta", "runge_kutta_adjoint", "step", "step_adjoint",
        "assemble", "advance", "write_outputs", "reverse_step", "reverse_outputs", "rollout", "rollout_adjoint", "evaluation",
        "look_closely", "certify",
    ),
)  # fmt: skip


def rows_of(tree: Mapping[str, Any], slots: int = 0) -> dict[str, int]:
    """How many rows each field has for a robot whose counts are given; `slots` is room for states while reversing."""
    frames, links, bodies = tree["n_frames"], tree["n_links"], tree["n_bodies"]
    dofs, q, actuators = tree["n_dofs"], tree["n_q"], tree["n_actuators"]
    shapes, tendons, terms = tree["n_shapes"], tree["n_tendons"], tree["tendon_first"][-1]
    counts = {
        "link": links, "joint": frames, "actuator": actuators, "tendon": tendons, "world": 1, "shape": shapes,
        "pair": tree["n_pair_rows"], "graft": tree["n_weights"],
    }  # fmt: skip
    params = {name: counts[name.split("_")[0]] for name in PARAMS} | {"joint_rest": q, "tendon_coefficient": terms}
    assembly = {
        "frame_pose": frames + 1, "placement": bodies, "inertia": bodies, "com": links, "drag": links, "shape": shapes,
    }  # fmt: skip
    per_dof = dict.fromkeys(("S", "armature", "tau", "U", "D_inv", "u", "qdd", "qd_jump"), dofs)
    per_tendon = dict.fromkeys(("length", "speed", "pull"), tendons)
    work = dict.fromkeys(WORK, bodies + 1) | per_dof | per_tendon
    touches = tree["most_touches"] if tree["n_point_nets"] else 0
    nodes, aims = tree["n_nodes"] + touches * tree["n_point_nodes"], tree["n_aims"]
    work |= {"node": nodes, "pre": nodes, "kept": aims + touches * tree["n_point_kept"]}
    work |= {"kept_inertia": aims if tree["n_mass_aims"] else 0}
    own = state_counts(tree)
    state = {"q": q, "qd": dofs, "more": own["n_more"], "all": own["n_state"]}
    state |= {name: place.stop - place.start for name, place in places(tree).items()}
    multiplier = dict.fromkeys(MULTIPLIER, bodies + 1) | {"mu": dofs, "u": dofs}
    runge = {
        "q": 4 * q,
        "qd": 4 * dofs,
        "qdd": 4 * dofs,
        "chart": 4 * dofs,
        "rate": dofs,
        "q0": q,
        "qd0": dofs,
        "part": 1,
        "wrench": links,
        "more": 4 * own["n_more"],
        "more_rate": 4 * own["n_more"],
        "more0": own["n_more"],
    }
    tables = {
        "params": params, "axis_reference": dict.fromkeys(AXIS_REFERENCE, frames), "assembly": assembly,
        "state": state | {"u": actuators, "force": 6 * links}, "next": state, "rate": state, "work": work, "multiplier": multiplier,
        "output": dict.fromkeys(OUTPUT, links), "runge": runge,
        "margin": {"record": 2, "own": tree["n_pair_rows"]},
        "touch": dict.fromkeys(TOUCH, tree["most_touches"])
        | {"shape": shapes, "extent": tree["n_trees"], "geometry": _geometry_rows(tree)}
        | dict.fromkeys(("friction", "restitution", "stiffness", "damping"), touches),
        "block": _block_rows(tree),
        "slots": {"state": slots * own["n_state"]},
    }  # fmt: skip
    for name in ("params", "assembly", "state", "next", "rate", "work", "output", "runge", "touch", "block"):
        tables[name + "_bar"] = tables[name]
    tables["spare"] = {
        "params": sum(params[f] * w for f, w in PARAMS.items()),
        "assembly": sum(assembly[f] * w for f, w in ASSEMBLY_BAR.items()),
        "state": own["n_state"],
        "lost": 1,
    }
    return {
        f"{t}.{f}": tables[t][f] for t, fields in SCHEMA.tables.items() if t in tables for f in fields if f in tables[t]
    }


def _geometry_rows(tree: Mapping[str, Any]) -> int:
    """A pair's candidates are written behind the points that were kept before."""
    searched = [POINTS[PAIR_KINDS[k]] for k in tree["pair_kind"] if is_searched(PAIR_KINDS[k])]
    return tree["most_touches"] + max(searched) if searched else 0


def _block_rows(tree: Mapping[str, Any]) -> dict[str, int]:
    blocks, bodies, dofs = tree["most_blocks"], tree["n_bodies"] + 1, tree["n_dofs"]
    sides, history = 2 * blocks, tree["sweeps"] * blocks
    trials = history if tree["solver"] == SOLVERS.index("matrix") else blocks
    rows = dict.fromkeys({**BLOCK, **BLOCK_BAR}, blocks)
    rows |= dict.fromkeys(("rows", "at_root", "answer", "W_root"), sides)
    rows |= dict.fromkeys(("A", "G"), tree["most_couplings"])
    rows |= dict.fromkeys(("motion", "pulled_motion", "Y_body", "composite", "composite_bar", "root"), bodies)
    rows |= dict.fromkeys(("Y", "W"), sides * tree["most_dofs"])
    rows |= dict.fromkeys(("pushed", "free", "rate", "speed", "pulled", "pulled_speed"), dofs)
    rows |= dict.fromkeys(("share", "balance", "unsettled", "square", "excess"), 1 if blocks else 0)
    rows |= {"lightness": tree["n_trees"] + 1}
    rows |= _joint_space_rows(tree)
    return rows | {"effort": sides * tree["most_path"], "x": history + blocks, "side": history, "e": trials}


def _columns(tree: Mapping[str, Any]) -> int:
    """Room for columns of J: two paths with their roots, or three rows of two joints."""
    return tree["most_blocks"] * max(2 * (tree["most_path"] + 6), 6) if tree["is_implicit"] else 0


def _joint_space_rows(tree: Mapping[str, Any]) -> dict[str, int]:
    dofs = tree["n_dofs"] if tree["is_implicit"] else 0
    rows = dict.fromkeys(("y", "mass_y", "gradient", "step", "mass_step", "own_mass"), dofs)
    rows |= dict.fromkeys(("column", "gained"), _columns(tree))
    rows |= dict.fromkeys(("u", "du", "gain", "cross", "level"), tree["most_blocks"] if tree["is_implicit"] else 0)
    return rows | {"mass": len(tree["chain"]) if dofs else 0, "H": dofs * dofs, "composite": tree["n_bodies"] + 1}


def lists_of(tree: Mapping[str, Any]) -> dict[str, int]:
    """How many integers each list has room for."""
    touches, blocks, couplings = tree["most_touches"], tree["most_blocks"], tree["most_couplings"]
    block = dict.fromkeys(("kind", "source", "own", "seen", "hides"), blocks) | dict.fromkeys(
        ("body", "fork", "root", "member"), 2 * blocks
    )
    block |= {"first": blocks + 1, "other": couplings, "mirror": couplings, "member_first": tree["n_trees"] + 1}
    dofs, columns = (tree["n_dofs"] if tree["is_implicit"] else 0), _columns(tree)
    block |= dict.fromkeys(("near_first", "near_last"), dofs) | dict.fromkeys(("near", "is_near"), dofs * dofs)
    block |= {"column_dof": columns}
    lists = {f"touch.{f}": touches for f in ("pair", "part")} | {
        "touch.scratch": SCRATCH if _geometry_rows(tree) else 0
    }
    return lists | {f"block.{f}": n for f, n in block.items()}


# kernels that solvers call
OF_SOLVERS = {
    "matrix": ("couplings", "sweeps", "matrix", "mixtures", "jumps", "restrain", "inertia"),
    "sums": ("own_couplings", "matrix_free", "jumps", "restrain", "inertia"),
    "implicit": ("columns", "masses", "neighbours", "factor", "newton", "implicit"),
}


def unused_kernels(tree: Mapping[str, Any]) -> tuple[str, ...]:
    """Kernels that a robot never reaches, and that are not compiled for it."""
    kinds = {PAIR_KINDS[k] for k in tree["pair_kind"]}
    unused = [f"{kind}_pairs" for kind in PAIR_KINDS if kind not in kinds]
    if not tree["n_shapes"]:
        unused.append("detection")
    if not tree["has_soft_contact"]:
        unused.append("springs")
    if not tree["n_tendons"]:
        unused.append("tendons")
    if not tree["n_constraints"]:
        unused += ["constraint_blocks", "constraints"]
    if not tree["has_impulses"]:
        unused += ["contact", "blocks", "rows"]
    used = OF_SOLVERS[SOLVERS[tree["solver"]]] if tree["has_impulses"] else ()
    unused += sorted({kernel for kernels in OF_SOLVERS.values() for kernel in kernels}.difference(used))
    if not tree["n_rate_aims"]:
        unused.append("grafted_rates")
    if not tree["n_point_nets"]:
        unused.append("point_grafts")
    if not tree["n_point_forces"]:
        unused.append("grafted_springs")
    if not tree["n_nets"]:
        unused += ["grafts", "ungraft", "regraft", "grafted_forces"]
    if tree["integrator"] != RK4:
        unused.append("runge_kutta")
    return tuple(name for one in unused for name in (one, f"{one}_adjoint"))


# names for the place where a whole table begins
WHOLE = {
    "params.all": ("params.link_mass", 0), "params_bar.all": ("params_bar.link_mass", 0),
    "assembly_bar.all": ("assembly_bar.frame_pose", 0),
    **{f"{table}.all": (f"{table}.q", 0) for table in ("state", "state_bar", "next", "next_bar")},
}  # fmt: skip


def aliases_of(tree: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Fields that are other names for rows of another."""
    tables = [table + suffix for table in ("state", "next", "rate") for suffix in ("", "_bar")]
    own = {f"{t}.{name}": (f"{t}.more", place.start) for t in tables for name, place in places(tree).items()}
    return WHOLE | own
