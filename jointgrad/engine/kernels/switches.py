"""What switches in a step besides contacts: limits of actuators, slack of tendons, corners in networks -> margin.record.

Nearest is how far an actuator's control or force is from a limit, or a tendon's length from an end of its slack, as a share of
what lies between the two limits (as it is where one of them is infinite). All of them are in the signature.
"""

from ...compiler.elementary import inverse, minimum, select
from ...compiler.kernel import kernel, sweep
from ...compiler.trace import traced
from ...model.arrays import POSITION, TORQUE, VELOCITY
from ...model.grafts import RELU
from .drive import damper_force, position_force, settings_of, torque_force, velocity_force
from .margins import is_near
from .stages.contact.clamps import FAR, to_bounds
from .stages.contact.records import replaced, smaller, weight_of
from .stages.grafts.points import first_node, margin_at

# of the weights in a signature, those of actuators, tendons and nodes; margins.py has those from -1 to -5
OF_ACTUATORS, OF_TENDONS, OF_NODES = -6, -7, -8


def share_between(x, low, high):
    """Distance from the nearer limit as a share of the range, and the side: inside 1, below 0, above 2."""
    distance, side = to_bounds(x, low, high), select(x > high, 2.0, select(low > x, 0.0, 1.0))
    width = high - low
    is_finite = FAR > width
    whole = select(is_finite, width, 1.0)
    # limits that leave no room leave nothing to switch
    has_room = whole > 0.0
    return select(has_room, distance * inverse(select(has_room, whole, 1.0)), FAR), side


def drive_switch(force, u, control_limit, force_limit):
    of_control, control_side = share_between(u, *control_limit)
    of_force, force_side = share_between(force, *force_limit)
    return minimum(of_control, of_force), control_side + 3.0 * force_side


@traced
def torque_switch(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    force = torque_force(u, q, rate, gain, damping, bias, gear, control_limit)
    return drive_switch(force, u, control_limit, force_limit)


@traced
def position_switch(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    force = position_force(u, q, rate, gain, damping, bias, gear, control_limit)
    return drive_switch(force, u, control_limit, force_limit)


@traced
def velocity_switch(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    force = velocity_force(u, q, rate, gain, damping, bias, gear, control_limit)
    return drive_switch(force, u, control_limit, force_limit)


@traced
def damper_switch(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    force = damper_force(u, q, rate, gain, damping, bias, gear, control_limit)
    return drive_switch(force, u, control_limit, force_limit)


@traced
def slack_switch(length, stiffness, rest):
    """A tendon without a spring, or with a single rest length, has no slack to leave."""
    share, side = share_between(length, rest[0], rest[1])
    pulls = stiffness * stiffness > 0.0
    return select(pulls, share, FAR), select(pulls, select(rest[1] > rest[0], side, 0.0), 0.0)


@traced
def one(anything):
    return 0.0 * anything + 1.0


@traced
def noted(record, share, side, who, weight):
    return replaced(smaller(record, 14, share, who), 13, (record[13] + weight * side,))


@traced
def with_node(record, pre, counts, weight):
    return replaced(record, 13, (record[13] + select(pre > 0.0, counts * weight, 0.0),))


@sweep
def switch_of(frame, q, rate, a):
    kind, u = frame.tree.actuator_kind[a], frame.state.u[a]
    if kind == TORQUE:
        return torque_switch(u, q, rate, *settings_of(frame, a))
    if kind == POSITION:
        return position_switch(u, q, rate, *settings_of(frame, a))
    if kind == VELOCITY:
        return velocity_switch(u, q, rate, *settings_of(frame, a))
    return damper_switch(u, q, rate, *settings_of(frame, a))


@sweep
def drive_record(frame, record, q, rate, a):
    share, side = switch_of(frame, q, rate, a)
    return noted(record, share, side, 1.0 * a, weight_of(a, OF_ACTUATORS))


@sweep
def node_record(frame, record, net, node, counts, seed):
    """Rectified nodes of a network, from its first node on."""
    tree = frame.tree
    for k in range(tree.net_layer[net], tree.net_layer[net] + tree.net_layers[net]):
        node += tree.layer_in[k]
        if tree.layer_kind[k] == RELU:
            for i in range(tree.layer_out[k]):
                seed += 1
                record = with_node(record, frame.work.pre[node + i], counts, weight_of(seed, OF_NODES))
    return record


@sweep
def net_record(frame, record):
    tree, touch = frame.tree, frame.touch
    for net in range(tree.n_nets):
        if tree.net_row[net] < 0:
            record = node_record(
                frame, record, net, tree.net_node[net], one(frame.params.world_dt[0]), tree.net_node[net]
            )
        else:
            for i in range(touch.n):
                if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                    counts = is_near(touch.gap[i], margin_at(frame, i))
                    seed = tree.n_nodes + (16 * touch.pair[i] + touch.part[i]) * tree.n_point_nodes + tree.net_node[net]
                    node = first_node(frame, i) + tree.net_node[net]
                    record = node_record(frame, record, net, node, counts, seed)
    return record


@kernel
def switches(frame):
    """Adds to the record that `margins` began."""
    tree, params, state, work, margin = frame.tree, frame.params, frame.state, frame.work, frame.margin
    record = margin.record[0]
    for n in range(tree.n_joint_drives):
        a = tree.joint_drive[n]
        q, rate = state.q[tree.actuator_q[a]], state.qd[tree.actuator_dof[a]]
        record = drive_record(frame, record, q, rate, a)
    for n in range(tree.n_tendon_drives):
        a = tree.tendon_drive[n]
        t = tree.actuator_tendon[a]
        record = drive_record(frame, record, work.length[t], work.speed[t], a)
    for t in range(tree.n_tendons):
        share, side = slack_switch(work.length[t], params.tendon_stiffness[t], params.tendon_rest[t])
        record = noted(record, share, side, 1.0 * (tree.n_actuators + t), weight_of(t, OF_TENDONS))
    if tree.n_nets != 0:
        record = net_record(frame, record)
    margin.record[0] = record
