"""Networks inside the step: what they see -> what they change of controls, parameters, masses, forces and points that touch.

After kinematics networks of the robot see its state, the velocities of links and what earlier networks said; after detection
those at points see how deep they are and how they slide (NeuralSim, sec. III-A). Each sees what those before it have changed.
`aims` are where outputs go: a parameter, a control or a mass is replaced for this step and put back after it; a force or an
acceleration is changed once that of the model is known.
"""

from ....algebra import inertia
from ....algebra.spatial import add, composed, moved_about, moved_pose, sub
from ....algebra.vector import cross, times
from ....compiler.elementary import detached
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.grafts import JOINT_ACCELERATION, JOINT_FORCE, LINK_FORCE, LINK_MASS
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
def changed_mass(tree, params, assembly, state, work, a):
    """Inertia of a body once its link has the mass that a network says."""
    j, mass = tree.aim_index[a], params.link_mass[tree.aim_index[a]]
    new = combined(tree, a, mass, work.node[tree.aim_node[a]], rate_of(tree, params, state, a))
    return with_mass(work.kept_inertia[a], assembly.com[j], less(new, mass))


# in the step ------------------------------------------------------------------------------------------------------------------


@sweep
def aim_at(tree, params, assembly, state, work, a):
    """A mass, control or parameter is replaced; what it was is kept."""
    kind, i = tree.aim_kind[a], tree.aim_index[a]
    if kind == LINK_MASS:
        b = tree.link_body[i]
        work.kept_inertia[a] = assembly.inertia[b]
        assembly.inertia[b] = changed_mass(tree, params, assembly, state, work, a)
    elif is_value(kind):
        base, said = taken(params, state, kind, i), work.node[tree.aim_node[a]]
        work.kept[a] = same(base)
        put(params, state, kind, i, combined(tree, a, base, said, rate_of(tree, params, state, a)))


@kernel
def grafts(tree, params, assembly, state, work):
    for net in range(tree.n_nets):
        if tree.net_row[net] < 0:
            for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                see(tree, assembly, state, work, s, tree.sense_node[s])
            run_network(tree, params, work, net, tree.net_node[net])
            for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                aim_at(tree, params, assembly, state, work, a)


@inlined
def is_of_robot(tree, a):
    return tree.aim_kept[a] < 0


@kernel
def ungraft(tree, params, assembly, state, work):
    """What was replaced is put back, the last first."""
    a = tree.n_aims - 1
    while a >= 0:
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            assembly.inertia[tree.link_body[i]] = work.kept_inertia[a]
        elif is_of_robot(tree, a) and is_value(kind):
            put(params, state, kind, i, work.kept[a])
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
def grafted_forces(tree, params, assembly, state, work):
    for a in range(tree.n_aims):
        kind, i, node = tree.aim_kind[a], tree.aim_index[a], tree.aim_node[a]
        if kind == JOINT_FORCE:
            base = work.tau[i]
            work.kept[a] = same(base)
            work.tau[i] = combined(tree, a, base, work.node[node], rate_of(tree, params, state, a))
        elif kind == LINK_FORCE:
            b = tree.link_body[i]
            accumulate(
                work.f, b,
                link_push(
                    work.pose[b], work.pose[tree.reference[b]], assembly.frame_pose[tree.link_frame[i]], work.node[node],
                    work.node[node + 1], work.node[node + 2], work.node[node + 3], work.node[node + 4], work.node[node + 5],
                ),
            )  # fmt: skip


@kernel
def grafted_rates(tree, params, state, work):
    """Accelerations, once contact is solved: they change the motion, not what contact answers to."""
    for a in range(tree.n_aims):
        if tree.aim_kind[a] == JOINT_ACCELERATION:
            i, base = tree.aim_index[a], work.qdd[tree.aim_index[a]]
            work.kept[a] = same(base)
            work.qdd[i] = combined(tree, a, base, work.node[tree.aim_node[a]], rate_of(tree, params, state, a))


# the reverse ----------------------------------------------------------------------------------------------------------------


@kernel
def regraft(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch):
    """What the step used stands again; the cotangents that parameters have so far are set aside."""
    for k in range(tree.n_nodes + touch.n * tree.n_point_nodes):
        work_bar.node[k] = zero(params.world_dt[0])
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            assembly.inertia[tree.link_body[i]] = changed_mass(tree, params, assembly, state, work, a)
        elif is_of_robot(tree, a) and is_value(kind):
            said = work.node[tree.aim_node[a]]
            put(params, state, kind, i, combined(tree, a, work.kept[a], said, rate_of(tree, params, state, a)))
    set_aside(tree, params, params_bar, assembly_bar, state_bar, work_bar)


@sweep
def set_aside(tree, params, params_bar, assembly_bar, state_bar, work_bar):
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            b = tree.link_body[i]
            work_bar.kept_inertia[a] = assembly_bar.inertia[b]
            assembly_bar.inertia[b] = zero10(params.world_dt[0])
        elif is_of_robot(tree, a) and is_value(kind):
            work_bar.kept[a] = same(taken(params_bar, state_bar, kind, i))
            put(params_bar, state_bar, kind, i, zero(params.world_dt[0]))


@sweep
def take_back(tree, params_bar, assembly_bar, state_bar, work_bar):
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if kind == LINK_MASS:
            b = tree.link_body[i]
            assembly_bar.inertia[b] = plus(assembly_bar.inertia[b], work_bar.kept_inertia[a])
        elif is_of_robot(tree, a) and is_value(kind):
            put(params_bar, state_bar, kind, i, plus(taken(params_bar, state_bar, kind, i), work_bar.kept[a]))


@inlined
def split_bar(tree, params, state, state_bar, work, work_bar, a, base, bar):
    """Cotangents of an aim's base (returned), of what was said, and of the rate."""
    node = tree.aim_node[a]
    base_bar, said_bar, rate_bar = combined_adjoint(
        tree, a, base, work.node[node], rate_of(tree, params, state, a), bar
    )
    accumulate(work_bar.node, node, said_bar)
    if tree.aim_rate[a] >= 0:
        accumulate(state_bar.qd, tree.aim_rate[a], rate_bar)
    return base_bar


@kernel
def grafted_rates_adjoint(tree, params, state, state_bar, work, work_bar):
    a = tree.n_aims - 1
    while a >= 0:
        if tree.aim_kind[a] == JOINT_ACCELERATION:
            i = tree.aim_index[a]
            work_bar.qdd[i] = split_bar(
                tree, params, state, state_bar, work, work_bar, a, work.kept[a], work_bar.qdd[i]
            )
            work.qdd[i] = same(work.kept[a])
        a -= 1


@kernel
def grafted_forces_adjoint(tree, params, assembly, assembly_bar, state, state_bar, work, work_bar):
    a = tree.n_aims - 1
    while a >= 0:
        kind, i, node = tree.aim_kind[a], tree.aim_index[a], tree.aim_node[a]
        if kind == JOINT_FORCE:
            work_bar.tau[i] = split_bar(
                tree, params, state, state_bar, work, work_bar, a, work.kept[a], work_bar.tau[i]
            )
        elif kind == LINK_FORCE:
            b, frame = tree.link_body[i], tree.link_frame[i]
            pose_bar, frame_bar, x, y, z, p, q, r = moved_link_push_adjoint(
                work.pose[b], work.pose[tree.reference[b]], assembly.frame_pose[frame], work.node[node], work.node[node + 1],
                work.node[node + 2], work.node[node + 3], work.node[node + 4], work.node[node + 5], work_bar.f[b],
            )  # fmt: skip
            accumulate(work_bar.pose, b, pose_bar)
            accumulate(assembly_bar.frame_pose, frame, frame_bar)
            accumulate(work_bar.node, node, x)
            accumulate(work_bar.node, node + 1, y)
            accumulate(work_bar.node, node + 2, z)
            accumulate(work_bar.node, node + 3, p)
            accumulate(work_bar.node, node + 4, q)
            accumulate(work_bar.node, node + 5, r)
        a -= 1


@sweep
def aim_at_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, a):
    kind, i = tree.aim_kind[a], tree.aim_index[a]
    if kind == LINK_MASS:
        b, mass = tree.link_body[i], params.link_mass[i]
        new = combined(tree, a, mass, work.node[tree.aim_node[a]], rate_of(tree, params, state, a))
        I_bar, com_bar, more_bar = with_mass_adjoint(
            work.kept_inertia[a], assembly.com[i], less(new, mass), assembly_bar.inertia[b]
        )
        assembly.inertia[b], assembly_bar.inertia[b] = work.kept_inertia[a], I_bar
        accumulate(assembly_bar.com, i, com_bar)
        mass_bar = split_bar(tree, params, state, state_bar, work, work_bar, a, mass, more_bar)
        accumulate(params_bar.link_mass, i, less(mass_bar, more_bar))
    elif is_value(kind):
        put(params, state, kind, i, work.kept[a])
        base_bar = split_bar(
            tree, params, state, state_bar, work, work_bar, a, work.kept[a], taken(params_bar, state_bar, kind, i)
        )
        put(params_bar, state_bar, kind, i, base_bar)


@kernel
def grafts_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call):
    net = tree.n_nets - 1
    while net >= 0:
        if tree.net_row[net] < 0:
            a = tree.net_aim[net] + tree.net_aims[net] - 1
            while a >= tree.net_aim[net]:
                aim_at_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, a)
                a -= 1
            run_network_adjoint(tree, params, params_bar, work, work_bar, net, tree.net_node[net], call.wants_params)
            for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                see_adjoint(tree, assembly, assembly_bar, state_bar, work, work_bar, s, tree.sense_node[s])
        net -= 1
    take_back(tree, params_bar, assembly_bar, state_bar, work_bar)
