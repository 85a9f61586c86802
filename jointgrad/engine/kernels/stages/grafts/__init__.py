"""Networks inside the step: what they see -> what they change of controls, parameters, masses, forces and points that touch.

After kinematics networks of the robot see its state, the velocities of links and what earlier networks said; after detection
those at points see how deep they are and how they slide (NeuralSim, sec. III-A). Each sees what those before it have changed.
`aims` are where outputs go: a parameter, a control or a mass is replaced for this step and put back after it; a force or an
acceleration is changed once that of the model is known.
"""

from .....algebra import inertia
from .....algebra.spatial import add, composed, moved_about, moved_pose, sub
from .....algebra.vector import cross, times
from .....compiler.elementary import detached
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.grafts import JOINT_ACCELERATION, JOINT_FORCE, LINK_FORCE, LINK_MASS
from ...operators import less, plus, zero, zero10
from .aims import combined, combined_adjoint, is_value, put, rate_of, taken
from .networks import run_network, run_network_adjoint
from .senses import same, see, see_adjoint

READS = (
    "state.q", "state.qd", "state.u", "work.pose", "work.v", "touch.point", "touch.normal", "touch.gap",
    "assembly.frame_pose", "assembly.inertia", "assembly.com", "params.graft_weight", "params.link_mass", "params.joint_damping",
    "params.joint_stiffness", "params.joint_armature", "params.joint_friction", "params.actuator_gain", "params.actuator_damping",
    "params.pair_friction", "params.pair_restitution", "params.pair_stiffness", "params.pair_damping", "params.world_density",
    "params.world_viscosity",
)  # fmt: skip
WRITES = (
    "work.node", "work.pre", "work.kept", "work.kept_inertia", "touch.friction", "touch.restitution", "touch.stiffness",
    "touch.damping",
)  # fmt: skip


# masses: the inertia of a body with another mass at a link's centre -----------------------------------------------------------


@traced
def with_mass(I, com, more):
    return add(I, inertia.about_origin(more, com, (0.0,) * 6))


with_mass_adjoint = adjoint(with_mass, "I com more")


@inlined
def changed_mass(frame, a):
    """Inertia of a body once its link has the mass that a network says."""
    tree, work = frame.tree, frame.work
    j, mass = tree.aim_index[a], frame.params.link_mass[tree.aim_index[a]]
    new = combined(frame, a, mass, work.node[tree.aim_node[a]], rate_of(frame, a))
    return with_mass(work.kept_inertia[a], frame.assembly.com[j], less(new, mass))


# in the step ------------------------------------------------------------------------------------------------------------------


@sweep
def aim_at(frame, a):
    """A mass, control or parameter is replaced; what it was is kept."""
    tree, assembly, work = frame.tree, frame.assembly, frame.work
    kind, i = tree.aim_kind[a], tree.aim_index[a]
    if kind == LINK_MASS:
        b = tree.link_body[i]
        work.kept_inertia[a] = assembly.inertia[b]
        assembly.inertia[b] = changed_mass(frame, a)
    elif is_value(kind):
        base, said = taken(frame, kind, i), work.node[tree.aim_node[a]]
        work.kept[a] = same(base)
        put(frame, kind, i, combined(frame, a, base, said, rate_of(frame, a)))


@kernel
def grafts(frame):
    tree = frame.tree
    for net in range(tree.n_nets):
        if tree.net_row[net] < 0:
            for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                see(frame, s, tree.sense_node[s])
            run_network(frame, net, tree.net_node[net])
            for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                aim_at(frame, a)


@inlined
def is_of_robot(frame, a):
    return frame.tree.aim_kept[a] < 0


@kernel
def ungraft(frame):
    """What was replaced is put back, the last first."""
    tree, work = frame.tree, frame.work
    a = tree.n_aims - 1
    while a >= 0:
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            frame.assembly.inertia[tree.link_body[i]] = work.kept_inertia[a]
        elif is_of_robot(frame, a) and is_value(kind):
            put(frame, kind, i, work.kept[a])
        a -= 1


@traced
def link_push(pose, reference, frame, a, b, c, d, e, f):
    """Force and torque in a link's axes, at its origin, as a force about the reference point."""
    link = composed(pose, frame)
    R, arm = link[:9], sub(link[9:], detached(reference[9:]))
    force, torque = times(R, (a, b, c)), times(R, (d, e, f))
    return (*add(torque, cross(arm, force)), *force)


@traced
def moved_link_push(pose, reference, frame, a, b, c, d, e, f, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    moved = moved_about(pose, reference, body_delta)
    return link_push.fn(moved, reference, moved_pose(frame, frame_delta), a, b, c, d, e, f)


moved_link_push_adjoint = adjoint(
    moved_link_push, "body_delta frame_delta a b c d e f", at_zero="body_delta frame_delta"
)


@kernel
def grafted_forces(frame):
    tree, work = frame.tree, frame.work
    for a in range(tree.n_aims):
        kind, i, node = tree.aim_kind[a], tree.aim_index[a], tree.aim_node[a]
        if kind == JOINT_FORCE:
            base = work.tau[i]
            work.kept[a] = same(base)
            work.tau[i] = combined(frame, a, base, work.node[node], rate_of(frame, a))
        elif kind == LINK_FORCE:
            b = tree.link_body[i]
            accumulate(
                work.f, b,
                link_push(
                    work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[tree.link_frame[i]], work.node[node],
                    work.node[node + 1], work.node[node + 2], work.node[node + 3], work.node[node + 4], work.node[node + 5],
                ),
            )  # fmt: skip


@kernel
def grafted_rates(frame):
    """Accelerations, once contact is solved: they change the motion, not what contact answers to."""
    tree, work = frame.tree, frame.work
    for a in range(tree.n_aims):
        if tree.aim_kind[a] == JOINT_ACCELERATION:
            i, base = tree.aim_index[a], work.qdd[tree.aim_index[a]]
            work.kept[a] = same(base)
            work.qdd[i] = combined(frame, a, base, work.node[tree.aim_node[a]], rate_of(frame, a))


# the reverse ----------------------------------------------------------------------------------------------------------------


@kernel
def regraft(frame, bar):
    """What the step used stands again; the cotangents that parameters have so far are set aside."""
    tree, work = frame.tree, frame.work
    for k in range(tree.n_nodes + frame.touch.n * tree.n_point_nodes):
        bar.work.node[k] = zero(frame.params.world_dt[0])
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            frame.assembly.inertia[tree.link_body[i]] = changed_mass(frame, a)
        elif is_of_robot(frame, a) and is_value(kind):
            said = work.node[tree.aim_node[a]]
            put(frame, kind, i, combined(frame, a, work.kept[a], said, rate_of(frame, a)))
    set_aside(frame, bar)


@sweep
def set_aside(frame, bar):
    tree, params = frame.tree, frame.params
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            b = tree.link_body[i]
            bar.work.kept_inertia[a] = bar.assembly.inertia[b]
            bar.assembly.inertia[b] = zero10(params.world_dt[0])
        elif is_of_robot(frame, a) and is_value(kind):
            bar.work.kept[a] = same(taken(bar, kind, i))
            put(bar, kind, i, zero(params.world_dt[0]))


@sweep
def take_back(frame, bar):
    tree = frame.tree
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            b = tree.link_body[i]
            bar.assembly.inertia[b] = plus(bar.assembly.inertia[b], bar.work.kept_inertia[a])
        elif is_of_robot(frame, a) and is_value(kind):
            put(bar, kind, i, plus(taken(bar, kind, i), bar.work.kept[a]))


@inlined
def split_bar(frame, bar, a, base, value_bar):
    """Cotangents of an aim's base (returned), of what was said, and of the rate."""
    tree = frame.tree
    node = tree.aim_node[a]
    base_bar, said_bar, rate_bar = combined_adjoint(frame, a, base, frame.work.node[node], rate_of(frame, a), value_bar)
    accumulate(bar.work.node, node, said_bar)
    if tree.aim_rate[a] >= 0:
        accumulate(bar.state.qd, tree.aim_rate[a], rate_bar)
    return base_bar


@kernel
def grafted_rates_adjoint(frame, bar):
    tree, work = frame.tree, frame.work
    a = tree.n_aims - 1
    while a >= 0:
        if tree.aim_kind[a] == JOINT_ACCELERATION:
            i = tree.aim_index[a]
            bar.work.qdd[i] = split_bar(frame, bar, a, work.kept[a], bar.work.qdd[i])
            work.qdd[i] = same(work.kept[a])
        a -= 1


@kernel
def grafted_forces_adjoint(frame, bar):
    tree, work = frame.tree, frame.work
    a = tree.n_aims - 1
    while a >= 0:
        kind, i, node = tree.aim_kind[a], tree.aim_index[a], tree.aim_node[a]
        if kind == JOINT_FORCE:
            bar.work.tau[i] = split_bar(frame, bar, a, work.kept[a], bar.work.tau[i])
        elif kind == LINK_FORCE:
            b, row = tree.link_body[i], tree.link_frame[i]
            pose_bar, frame_bar, x, y, z, p, q, r = moved_link_push_adjoint(
                work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[row], work.node[node], work.node[node + 1],
                work.node[node + 2], work.node[node + 3], work.node[node + 4], work.node[node + 5], bar.work.f[b],
            )  # fmt: skip
            accumulate(bar.work.pose, b, pose_bar)
            accumulate(bar.assembly.frame_pose, row, frame_bar)
            accumulate(bar.work.node, node, x)
            accumulate(bar.work.node, node + 1, y)
            accumulate(bar.work.node, node + 2, z)
            accumulate(bar.work.node, node + 3, p)
            accumulate(bar.work.node, node + 4, q)
            accumulate(bar.work.node, node + 5, r)
        a -= 1


@sweep
def aim_at_adjoint(frame, bar, a):
    tree, assembly, work = frame.tree, frame.assembly, frame.work
    kind, i = tree.aim_kind[a], tree.aim_index[a]
    if kind == LINK_MASS:
        b, mass = tree.link_body[i], frame.params.link_mass[i]
        new = combined(frame, a, mass, work.node[tree.aim_node[a]], rate_of(frame, a))
        I_bar, com_bar, more_bar = with_mass_adjoint(
            work.kept_inertia[a], assembly.com[i], less(new, mass), bar.assembly.inertia[b]
        )
        assembly.inertia[b], bar.assembly.inertia[b] = work.kept_inertia[a], I_bar
        accumulate(bar.assembly.com, i, com_bar)
        mass_bar = split_bar(frame, bar, a, mass, more_bar)
        accumulate(bar.params.link_mass, i, less(mass_bar, more_bar))
    elif is_value(kind):
        put(frame, kind, i, work.kept[a])
        base_bar = split_bar(frame, bar, a, work.kept[a], taken(bar, kind, i))
        put(bar, kind, i, base_bar)


@kernel
def grafts_adjoint(frame, bar):
    tree = frame.tree
    net = tree.n_nets - 1
    while net >= 0:
        if tree.net_row[net] < 0:
            a = tree.net_aim[net] + tree.net_aims[net] - 1
            while a >= tree.net_aim[net]:
                aim_at_adjoint(frame, bar, a)
                a -= 1
            run_network_adjoint(frame, bar, net, tree.net_node[net], frame.call.wants_params)
            for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                see_adjoint(frame, bar, s, tree.sense_node[s])
        net -= 1
    take_back(frame, bar)
