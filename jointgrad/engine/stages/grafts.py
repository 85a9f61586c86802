"""Networks inside the step: what they see -> what they add to controls, parameters, joint forces and forces on links.

They see the state and the velocities of links, after kinematics; what they say changes later stages (NeuralSim, sec. III-A).
A network is a row of layers over `work.node`, its inputs first; weights of a layer lie input by input, biases last. `aims` are
where outputs go: a parameter or a control is replaced for this step and put back after it, a force is changed once the forces
of the model are known.
"""

from ...algebra.spatial import add, composed, moved_about, moved_pose, sub
from ...algebra.vector import cross, times, transposed_times
from ...compiler.elementary import detached, exp, log, maximum, minimum, select, sin, tanh
from ...compiler.kernel import accumulate, inlined, kernel, sweep
from ...compiler.reverse import adjoint
from ...compiler.trace import traced
from ...model.grafts import (
    ACTUATOR_DAMPING,
    ACTUATOR_GAIN,
    ADD,
    CONTROL,
    DISSIPATE,
    ELU,
    JOINT_ARMATURE,
    JOINT_DAMPING,
    JOINT_FORCE,
    JOINT_FRICTION,
    JOINT_STIFFNESS,
    LINK_FORCE,
    PAIR_DAMPING,
    PAIR_FRICTION,
    PAIR_RESTITUTION,
    PAIR_STIFFNESS,
    RELU,
    REPLACE,
    SEE_CONTROL,
    SEE_POSITION,
    SEE_RATE,
    SIGMOID,
    SIN,
    SOFTPLUS,
    TANH,
    WORLD_DENSITY,
    WORLD_VISCOSITY,
)

READS = (
    "state.q", "state.qd", "state.u", "work.pose", "work.v", "assembly.frame_pose", "params.graft_weight", "params.joint_damping",
    "params.joint_stiffness", "params.joint_armature", "params.joint_friction", "params.actuator_gain", "params.actuator_damping",
    "params.pair_friction", "params.pair_restitution", "params.pair_stiffness", "params.pair_damping", "params.world_density",
    "params.world_viscosity",
)  # fmt: skip
WRITES = ("work.node", "work.pre", "work.kept")


# activations --------------------------------------------------------------------------------------------------------------


@traced
def is_tanh(x):
    return tanh(x)


@traced
def is_elu(x):
    return select(x > 0.0, x, exp(minimum(x, 0.0)) - 1.0)


@traced
def is_relu(x):
    return maximum(x, 0.0)


@traced
def is_softplus(x):
    return maximum(x, 0.0) + log(1.0 + exp(-maximum(x, -x)))


@traced
def is_sin(x):
    return sin(x)


@traced
def is_sigmoid(x):
    return 0.5 + 0.5 * tanh(0.5 * x)


@inlined
def activated(kind, x):
    if kind == TANH:
        return is_tanh(x)
    if kind == ELU:
        return is_elu(x)
    if kind == RELU:
        return is_relu(x)
    if kind == SOFTPLUS:
        return is_softplus(x)
    if kind == SIN:
        return is_sin(x)
    if kind == SIGMOID:
        return is_sigmoid(x)
    return x


is_tanh_adjoint, is_elu_adjoint, is_relu_adjoint = (adjoint(f, "x") for f in (is_tanh, is_elu, is_relu))
is_softplus_adjoint, is_sin_adjoint, is_sigmoid_adjoint = (adjoint(f, "x") for f in (is_softplus, is_sin, is_sigmoid))


@inlined
def activated_adjoint(kind, x, bar):
    if kind == TANH:
        return is_tanh_adjoint(x, bar)
    if kind == ELU:
        return is_elu_adjoint(x, bar)
    if kind == RELU:
        return is_relu_adjoint(x, bar)
    if kind == SOFTPLUS:
        return is_softplus_adjoint(x, bar)
    if kind == SIN:
        return is_sin_adjoint(x, bar)
    if kind == SIGMOID:
        return is_sigmoid_adjoint(x, bar)
    return bar


# networks: layers over work.node ------------------------------------------------------------------------------------------


@traced
def fused(a, w, x):
    return a + w * x


@traced
def four_fused(a, b, c, d, p, q, r, s, x):
    """Four sums side by side, which need not wait for each other."""
    return a + p * x, b + q * x, c + r * x, d + s * x


@inlined
def layer(params, work, w, first, n_in, n_out, kind):
    """Nodes first + n_in ... from the n_in nodes before them; work.pre keeps what went into the activations."""
    W, bias, out = params.graft_weight, w + n_in * n_out, first + n_in
    o = 0
    while o + 4 <= n_out:
        a, b, c, d = W[bias + o], W[bias + o + 1], W[bias + o + 2], W[bias + o + 3]
        for i in range(n_in):
            p = w + i * n_out + o
            a, b, c, d = four_fused(a, b, c, d, W[p], W[p + 1], W[p + 2], W[p + 3], work.node[first + i])
        work.pre[out + o], work.pre[out + o + 1], work.pre[out + o + 2], work.pre[out + o + 3] = a, b, c, d
        o += 4
    while o < n_out:
        a = W[bias + o]
        for i in range(n_in):
            a = fused(a, W[w + i * n_out + o], work.node[first + i])
        work.pre[out + o] = a
        o += 1
    for k in range(out, out + n_out):
        work.node[k] = activated(kind, work.pre[k])


@sweep
def run_network(tree, params, work, net):
    """Leaves the outputs in the last nodes."""
    w, node = tree.net_weight[net], tree.net_node[net]
    for k in range(tree.net_layer[net], tree.net_layer[net] + tree.net_layers[net]):
        n_in, n_out = tree.layer_in[k], tree.layer_out[k]
        layer(params, work, w, node, n_in, n_out, tree.layer_kind[k])
        w += (n_in + 1) * n_out
        node += n_in


@traced
def times_bar(x, bar):
    return x * bar


@traced
def sum_of(a, b, c, d):
    return (a + b) + (c + d)


@traced
def nothing(anything):
    return 0.0 * anything


@inlined
def layer_adjoint(params, params_bar, work, work_bar, w, first, n_in, n_out, kind, wants_weights):
    """Overwrites the cotangents of the layer's inputs; adds to those of its weights."""
    W, out, none = params.graft_weight, first + n_in, nothing(params.world_dt[0])
    for k in range(out, out + n_out):
        work_bar.node[k] = activated_adjoint(kind, work.pre[k], work_bar.node[k])
    for i in range(n_in):
        p, o, x = w + i * n_out, 0, work.node[first + i]
        a, b, c, d = none, none, none, none
        while o + 4 <= n_out:
            e, f, g, h = (
                work_bar.node[out + o],
                work_bar.node[out + o + 1],
                work_bar.node[out + o + 2],
                work_bar.node[out + o + 3],
            )
            a, b, c, d = (
                fused(a, W[p + o], e),
                fused(b, W[p + o + 1], f),
                fused(c, W[p + o + 2], g),
                fused(d, W[p + o + 3], h),
            )
            o += 4
        while o < n_out:
            a = fused(a, W[p + o], work_bar.node[out + o])
            o += 1
        work_bar.node[first + i] = sum_of(a, b, c, d)
        if wants_weights != 0:
            for j in range(n_out):
                accumulate(params_bar.graft_weight, p + j, times_bar(x, work_bar.node[out + j]))
    if wants_weights != 0:
        for j in range(n_out):
            accumulate(params_bar.graft_weight, w + n_in * n_out + j, work_bar.node[out + j])


@sweep
def run_network_adjoint(tree, params, params_bar, work, work_bar, net, wants_weights):
    first, last = tree.net_layer[net], tree.net_layer[net] + tree.net_layers[net] - 1
    w, node = tree.net_weight[net], tree.net_node[net]
    for k in range(first, last):
        w += (tree.layer_in[k] + 1) * tree.layer_out[k]
        node += tree.layer_in[k]
    k = last
    while k >= first:
        n_in, n_out = tree.layer_in[k], tree.layer_out[k]
        layer_adjoint(params, params_bar, work, work_bar, w, node, n_in, n_out, tree.layer_kind[k], wants_weights)
        k -= 1
        if k >= first:
            w -= (tree.layer_in[k] + 1) * tree.layer_out[k]
            node -= tree.layer_in[k]


# what they see ------------------------------------------------------------------------------------------------------------


@traced
def link_twist(pose, reference, frame, v):
    """Velocity of a link's origin, then its angular velocity, in the link's own axes."""
    link = composed(pose, frame)
    arm = sub(link[9:], detached(reference[9:]))
    R = link[:9]
    return (*transposed_times(R, add(v[3:], cross(v[:3], arm))), *transposed_times(R, v[:3]))


@traced
def moved_link_twist(pose, reference, frame, v, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    """A body moves about the reference point, which itself stays; a frame moves about its body's origin."""
    moved = moved_about(pose, reference, body_delta)
    return link_twist.fn(moved, reference, moved_pose(frame, frame_delta), v)


moved_link_twist_adjoint = adjoint(moved_link_twist, "body_delta frame_delta v", at_zero="body_delta frame_delta")


@traced
def same(x):
    return x


@sweep
def see(tree, assembly, state, work, s):
    kind, i, node = tree.sense_kind[s], tree.sense_index[s], tree.sense_node[s]
    if kind == SEE_POSITION:
        work.node[node] = same(state.q[i])
    elif kind == SEE_RATE:
        work.node[node] = same(state.qd[i])
    elif kind == SEE_CONTROL:
        work.node[node] = same(state.u[i])
    else:
        b = tree.link_body[i]
        twist = link_twist(
            work.pose[b], work.pose[tree.reference[b]], assembly.frame_pose[tree.link_frame[i]], work.v[b]
        )
        for k in range(6):
            work.node[node + k] = twist[k]


@sweep
def see_adjoint(tree, assembly, assembly_bar, state_bar, work, work_bar, s):
    kind, i, node = tree.sense_kind[s], tree.sense_index[s], tree.sense_node[s]
    if kind == SEE_POSITION:
        accumulate(state_bar.q, i, work_bar.node[node])
    elif kind == SEE_RATE:
        accumulate(state_bar.qd, i, work_bar.node[node])
    elif kind == SEE_CONTROL:
        accumulate(state_bar.u, i, work_bar.node[node])
    else:
        b, frame = tree.link_body[i], tree.link_frame[i]
        bar = (
            work_bar.node[node], work_bar.node[node + 1], work_bar.node[node + 2], work_bar.node[node + 3],
            work_bar.node[node + 4], work_bar.node[node + 5],
        )  # fmt: skip
        pose_bar, frame_bar, v_bar = moved_link_twist_adjoint(
            work.pose[b], work.pose[tree.reference[b]], assembly.frame_pose[frame], work.v[b], bar
        )
        accumulate(work_bar.pose, b, pose_bar)
        accumulate(work_bar.v, b, v_bar)
        accumulate(assembly_bar.frame_pose, frame, frame_bar)


# where it goes --------------------------------------------------------------------------------------------------------------


@traced
def added(base, said, rate):
    return base + said


@traced
def replaced(base, said, rate):
    return said


@traced
def scaled(base, said, rate):
    return base * (1.0 + said)


@traced
def braked(base, said, rate):
    """A brake that is never negative cannot give energy."""
    return base - said * said * rate


added_adjoint, replaced_adjoint = adjoint(added, "base said rate"), adjoint(replaced, "base said rate")
scaled_adjoint, braked_adjoint = adjoint(scaled, "base said rate"), adjoint(braked, "base said rate")


@traced
def not_negative(x):
    return maximum(x, 0.0)


not_negative_adjoint = adjoint(not_negative, "x")


@inlined
def free_value(mode, base, said, rate):
    if mode == ADD:
        return added(base, said, rate)
    if mode == REPLACE:
        return replaced(base, said, rate)
    if mode == DISSIPATE:
        return braked(base, said, rate)
    return scaled(base, said, rate)


@inlined
def combined(tree, a, base, said, rate):
    """What an aim becomes; some things cannot be negative."""
    value = free_value(tree.aim_mode[a], base, said, rate)
    if tree.aim_floor[a] != 0:
        return not_negative(value)
    return value


@inlined
def combined_adjoint(tree, a, base, said, rate, bar):
    mode = tree.aim_mode[a]
    if tree.aim_floor[a] != 0:
        bar = not_negative_adjoint(free_value(mode, base, said, rate), bar)
    if mode == ADD:
        return added_adjoint(base, said, rate, bar)
    if mode == REPLACE:
        return replaced_adjoint(base, said, rate, bar)
    if mode == DISSIPATE:
        return braked_adjoint(base, said, rate, bar)
    return scaled_adjoint(base, said, rate, bar)


@inlined
def taken(params, state, kind, i):
    """The present value of what an aim changes."""
    if kind == CONTROL:
        return state.u[i]
    if kind == JOINT_DAMPING:
        return params.joint_damping[i]
    if kind == JOINT_STIFFNESS:
        return params.joint_stiffness[i]
    if kind == JOINT_ARMATURE:
        return params.joint_armature[i]
    if kind == JOINT_FRICTION:
        return params.joint_friction[i]
    if kind == ACTUATOR_GAIN:
        return params.actuator_gain[i]
    if kind == ACTUATOR_DAMPING:
        return params.actuator_damping[i]
    if kind == PAIR_FRICTION:
        return params.pair_friction[i]
    if kind == PAIR_RESTITUTION:
        return params.pair_restitution[i]
    if kind == PAIR_STIFFNESS:
        return params.pair_stiffness[i]
    if kind == PAIR_DAMPING:
        return params.pair_damping[i]
    if kind == WORLD_DENSITY:
        return params.world_density[i]
    return params.world_viscosity[i]


@inlined
def put(params, state, kind, i, value):
    if kind == CONTROL:
        state.u[i] = value
    elif kind == JOINT_DAMPING:
        params.joint_damping[i] = value
    elif kind == JOINT_STIFFNESS:
        params.joint_stiffness[i] = value
    elif kind == JOINT_ARMATURE:
        params.joint_armature[i] = value
    elif kind == JOINT_FRICTION:
        params.joint_friction[i] = value
    elif kind == ACTUATOR_GAIN:
        params.actuator_gain[i] = value
    elif kind == ACTUATOR_DAMPING:
        params.actuator_damping[i] = value
    elif kind == PAIR_FRICTION:
        params.pair_friction[i] = value
    elif kind == PAIR_RESTITUTION:
        params.pair_restitution[i] = value
    elif kind == PAIR_STIFFNESS:
        params.pair_stiffness[i] = value
    elif kind == PAIR_DAMPING:
        params.pair_damping[i] = value
    elif kind == WORLD_DENSITY:
        params.world_density[i] = value
    elif kind == WORLD_VISCOSITY:
        params.world_viscosity[i] = value


@inlined
def is_force(kind):
    return kind == JOINT_FORCE or kind == LINK_FORCE


@sweep
def rate_of(tree, params, state, a):
    """What a brake acts on; any number elsewhere."""
    if tree.aim_rate[a] < 0:
        return nothing(params.world_dt[0])
    return state.qd[tree.aim_rate[a]]


@kernel
def grafts(tree, params, assembly, state, work):
    for s in range(tree.n_senses):
        see(tree, assembly, state, work, s)
    for net in range(tree.n_nets):
        run_network(tree, params, work, net)
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if not is_force(kind):
            base, said = taken(params, state, kind, i), work.node[tree.aim_node[a]]
            work.kept[a] = same(base)
            put(params, state, kind, i, combined(tree, a, base, said, rate_of(tree, params, state, a)))


@kernel
def ungraft(tree, params, state, work):
    """What was replaced is put back, the last first."""
    a = tree.n_aims - 1
    while a >= 0:
        if not is_force(tree.aim_kind[a]):
            put(params, state, tree.aim_kind[a], tree.aim_index[a], work.kept[a])
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


# the reverse ----------------------------------------------------------------------------------------------------------------


@kernel
def regraft(tree, params, params_bar, state, work, work_bar):
    """What the step used stands again; the cotangents that parameters have so far are set aside."""
    for k in range(tree.n_nodes):
        work_bar.node[k] = nothing(params.world_dt[0])
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if not is_force(kind):
            said = work.node[tree.aim_node[a]]
            put(params, state, kind, i, combined(tree, a, work.kept[a], said, rate_of(tree, params, state, a)))
    set_aside(tree, params, params_bar, state, work_bar)


@sweep
def set_aside(tree, params, params_bar, state_bar, work_bar):
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if not is_force(kind) and kind != CONTROL:
            work_bar.kept[a] = same(taken(params_bar, state_bar, kind, i))
            put(params_bar, state_bar, kind, i, nothing(params.world_dt[0]))


@inlined
def split_bar(tree, params, state, state_bar, work, work_bar, a, bar):
    """Cotangents of an aim's base (returned), of what was said, and of the rate."""
    node = tree.aim_node[a]
    base_bar, said_bar, rate_bar = combined_adjoint(
        tree, a, work.kept[a], work.node[node], rate_of(tree, params, state, a), bar
    )
    accumulate(work_bar.node, node, said_bar)
    if tree.aim_rate[a] >= 0:
        accumulate(state_bar.qd, tree.aim_rate[a], rate_bar)
    return base_bar


@kernel
def grafted_forces_adjoint(tree, params, assembly, assembly_bar, state, state_bar, work, work_bar):
    a = tree.n_aims - 1
    while a >= 0:
        kind, i, node = tree.aim_kind[a], tree.aim_index[a], tree.aim_node[a]
        if kind == JOINT_FORCE:
            work_bar.tau[i] = split_bar(tree, params, state, state_bar, work, work_bar, a, work_bar.tau[i])
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


@kernel
def grafts_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call):
    a = tree.n_aims - 1
    while a >= 0:
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if not is_force(kind):
            put(params, state, kind, i, work.kept[a])
            base_bar = split_bar(
                tree, params, state, state_bar, work, work_bar, a, taken(params_bar, state_bar, kind, i)
            )
            put(params_bar, state_bar, kind, i, base_bar)
        a -= 1
    for a in range(tree.n_aims):
        kind, i = tree.aim_kind[a], tree.aim_index[a]
        if not is_force(kind) and kind != CONTROL:
            put(params_bar, state_bar, kind, i, plus(taken(params_bar, state_bar, kind, i), work_bar.kept[a]))
    net = tree.n_nets - 1
    while net >= 0:
        run_network_adjoint(tree, params, params_bar, work, work_bar, net, call.wants_params)
        net -= 1
    for s in range(tree.n_senses):
        see_adjoint(tree, assembly, assembly_bar, state_bar, work, work_bar, s)


@traced
def plus(a, b):
    return a + b
