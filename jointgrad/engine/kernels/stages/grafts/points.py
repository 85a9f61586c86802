"""Networks at points that touch: one run for each point of their pairs, between detection and the laws of contact.

Depth, friction, restitution, stiffness and damping of a point are its own where a model has such networks (touch.friction and so
on stand in for the rows of pair parameters, see at_points.py). Forces of springs are changed after the springs. Where a
point does not touch in an environment nothing changes there: it is only listed because it touches in another.
"""

from .....algebra.rotation import tangents
from .....algebra.spatial import add, scale, sub
from .....algebra.vector import cross, dot
from .....compiler.elementary import detached, select
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.grafts import (
    POINT_DAMPING,
    POINT_DEPTH,
    POINT_DRAG,
    POINT_FRICTION,
    POINT_PRESS,
    POINT_RESTITUTION,
    POINT_STIFFNESS,
)
from ...operators import plus, zero, zero6
from .aims import combined, combined_adjoint
from .networks import run_network, run_network_adjoint
from .senses import opposite, same, see, see_adjoint, see_point, see_point_adjoint


@inlined
def first_node(frame, i):
    tree = frame.tree
    return tree.n_nodes + i * tree.n_point_nodes


@inlined
def first_kept(frame, i):
    tree = frame.tree
    return tree.n_aims + i * tree.n_point_kept


@inlined
def is_force(kind):
    return kind == POINT_PRESS or kind == POINT_DRAG


# values of a point ------------------------------------------------------------------------------------------------------------


@inlined
def value_of(frame, kind, i):
    touch = frame.touch
    if kind == POINT_DEPTH:
        return opposite(touch.gap[i])
    if kind == POINT_FRICTION:
        return touch.friction[i]
    if kind == POINT_RESTITUTION:
        return touch.restitution[i]
    if kind == POINT_STIFFNESS:
        return touch.stiffness[i]
    return touch.damping[i]


@inlined
def set_value(frame, kind, i, value):
    touch = frame.touch
    if kind == POINT_DEPTH:
        touch.gap[i] = opposite(value)
    elif kind == POINT_FRICTION:
        touch.friction[i] = value
    elif kind == POINT_RESTITUTION:
        touch.restitution[i] = value
    elif kind == POINT_STIFFNESS:
        touch.stiffness[i] = value
    elif kind == POINT_DAMPING:
        touch.damping[i] = value


@traced
def where_it_touches(gap, margin, changed, base):
    return select(margin > gap, changed, base)


where_it_touches_adjoint = adjoint(where_it_touches, "changed base")


@inlined
def margin_at(frame, i):
    """How far away a point counts as touching: springs begin at the surface."""
    tree, params = frame.tree, frame.params
    p = frame.touch.pair[i]
    if tree.pair_has_rows[p] != 0:
        return params.pair_margin[tree.pair_row[p]]
    return zero(params.world_dt[0])


@sweep
def change_point(frame, i, a):
    tree, work = frame.tree, frame.work
    kind, node = tree.aim_kind[a], first_node(frame, i) + tree.aim_node[a]
    if not is_force(kind):
        base = value_of(frame, kind, i)
        work.kept[first_kept(frame, i) + tree.aim_kept[a]] = same(base)
        new = combined(frame, a, base, work.node[node], zero(frame.params.world_dt[0]))
        if kind == POINT_DEPTH:
            new = where_it_touches(frame.touch.gap[i], margin_at(frame, i), new, base)
        set_value(frame, kind, i, new)


@sweep
def change_point_adjoint(frame, bar, i, a):
    tree, work = frame.tree, frame.work
    kind, node = tree.aim_kind[a], first_node(frame, i) + tree.aim_node[a]
    if not is_force(kind):
        base, value_bar = work.kept[first_kept(frame, i) + tree.aim_kept[a]], value_of(bar, kind, i)
        set_value(frame, kind, i, base)
        left = zero(value_bar)
        if kind == POINT_DEPTH:
            value_bar, left = where_it_touches_adjoint(frame.touch.gap[i], margin_at(frame, i), base, base, value_bar)
        base_bar, said_bar, _ = combined_adjoint(
            frame, a, base, work.node[node], zero(frame.params.world_dt[0]), value_bar
        )
        accumulate(bar.work.node, node, said_bar)
        set_value(bar, kind, i, plus(base_bar, left))


@sweep
def own_values(frame, i):
    params, touch = frame.params, frame.touch
    row = frame.tree.pair_row[touch.pair[i]]
    touch.friction[i], touch.restitution[i] = same(params.pair_friction[row]), same(params.pair_restitution[row])
    touch.stiffness[i], touch.damping[i] = same(params.pair_stiffness[row]), same(params.pair_damping[row])


@sweep
def own_values_adjoint(frame, bar, i):
    row = frame.tree.pair_row[frame.touch.pair[i]]
    accumulate(bar.params.pair_friction, row, bar.touch.friction[i])
    accumulate(bar.params.pair_restitution, row, bar.touch.restitution[i])
    accumulate(bar.params.pair_stiffness, row, bar.touch.stiffness[i])
    accumulate(bar.params.pair_damping, row, bar.touch.damping[i])


@kernel
def point_grafts(frame):
    tree, touch = frame.tree, frame.touch
    for i in range(touch.n):
        own_values(frame, i)
        for net in range(tree.n_nets):
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                first = first_node(frame, i)
                for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                    see(frame, s, first + tree.sense_node[s])
                    see_point(frame, i, s, first + tree.sense_node[s])
                run_network(frame, net, first + tree.net_node[net])
                for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                    change_point(frame, i, a)


@kernel
def point_grafts_adjoint(frame, bar):
    tree, touch = frame.tree, frame.touch
    for i in range(touch.n):
        net = tree.n_nets - 1
        while net >= 0:
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                first, a = first_node(frame, i), tree.net_aim[net] + tree.net_aims[net] - 1
                while a >= tree.net_aim[net]:
                    change_point_adjoint(frame, bar, i, a)
                    a -= 1
                run_network_adjoint(frame, bar, net, first + tree.net_node[net], frame.call.wants_params)
                for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                    node = first + tree.sense_node[s]
                    see_adjoint(frame, bar, s, node)
                    see_point_adjoint(frame, bar, i, s, node)
            net -= 1
        own_values_adjoint(frame, bar, i)


# forces of springs --------------------------------------------------------------------------------------------------------------


@traced
def press_of(force, normal):
    return dot(force, normal)


@traced
def drag_of(force, normal):
    t, s = tangents(normal)
    return dot(force, t), dot(force, s)


def pushes(point, change, reference_a, reference_b):
    """A change of the force on shape a at a point, as forces on both bodies about their reference points."""
    arm_a, arm_b = sub(point, detached(reference_a[9:])), sub(point, detached(reference_b[9:]))
    back = scale(change, -1.0)
    return (*cross(arm_a, change), *change), (*cross(arm_b, back), *back)


@traced
def with_press(point, normal, force, new, reference_a, reference_b):
    """The force with another normal part, and what that adds to both bodies."""
    change = scale(normal, new - dot(force, normal))
    return add(force, change), *pushes(point, change, reference_a, reference_b)


@traced
def with_drag(point, normal, force, new_1, new_2, reference_a, reference_b):
    t, s = tangents(normal)
    change = add(scale(t, new_1 - dot(force, t)), scale(s, new_2 - dot(force, s)))
    return add(force, change), *pushes(point, change, reference_a, reference_b)


press_of_adjoint, drag_of_adjoint = adjoint(press_of, "force normal"), adjoint(drag_of, "force normal")
with_press_adjoint = adjoint(with_press, "point normal force new")
with_drag_adjoint = adjoint(with_drag, "point normal force new_1 new_2")


@inlined
def new_force(frame, a, i, node, base):
    """One component, where the point touches."""
    none = zero(frame.params.world_dt[0])
    return where_it_touches(frame.touch.gap[i], none, combined(frame, a, base, frame.work.node[node], none), base)


@sweep
def change_force(frame, i, a):
    tree, work, touch = frame.tree, frame.work, frame.touch
    p, node, kept = touch.pair[i], first_node(frame, i) + tree.aim_node[a], first_kept(frame, i) + tree.aim_kept[a]
    b, c = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    at_b, at_c = work.pose[tree.reference[b]], work.pose[tree.reference[c]]
    point, normal, force = touch.point[i], touch.normal[i], touch.force[i]
    work.kept[kept], work.kept[kept + 1], work.kept[kept + 2] = force[0], force[1], force[2]
    if tree.aim_kind[a] == POINT_PRESS:
        new = new_force(frame, a, i, node, press_of(force, normal))
        touch.force[i], push, back = with_press(point, normal, force, new, at_b, at_c)
    else:
        x, y = drag_of(force, normal)
        new_x = new_force(frame, a, i, node, x)
        new_y = new_force(frame, a, i, node + 1, y)
        touch.force[i], push, back = with_drag(point, normal, force, new_x, new_y, at_b, at_c)
    accumulate(work.touch, b, push)
    accumulate(work.touch, c, back)


@inlined
def new_force_adjoint(frame, bar, a, i, node, base, force_bar):
    """Cotangent of the component that was there; adds to that of what was said."""
    none = zero(frame.params.world_dt[0])
    changed_bar, left = where_it_touches_adjoint(frame.touch.gap[i], none, base, base, force_bar)
    base_bar, said_bar, _ = combined_adjoint(frame, a, base, frame.work.node[node], none, changed_bar)
    accumulate(bar.work.node, node, said_bar)
    return plus(base_bar, left)


@sweep
def change_force_adjoint(frame, bar, i, a):
    tree, work, touch = frame.tree, frame.work, frame.touch
    p, node, kept = touch.pair[i], first_node(frame, i) + tree.aim_node[a], first_kept(frame, i) + tree.aim_kept[a]
    b, c = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    at_b, at_c = work.pose[tree.reference[b]], work.pose[tree.reference[c]]
    point, normal, force = touch.point[i], touch.normal[i], (work.kept[kept], work.kept[kept + 1], work.kept[kept + 2])
    bars = (bar.touch.force[i], bar.work.touch[b], bar.work.touch[c])
    if tree.aim_kind[a] == POINT_PRESS:
        press = press_of(force, normal)
        new = new_force(frame, a, i, node, press)
        point_bar, normal_bar, force_bar, new_bar = with_press_adjoint(point, normal, force, new, at_b, at_c, bars)
        press_bar = new_force_adjoint(frame, bar, a, i, node, press, new_bar)
        more_force, more_normal = press_of_adjoint(force, normal, press_bar)
    else:
        x, y = drag_of(force, normal)
        new_x = new_force(frame, a, i, node, x)
        new_y = new_force(frame, a, i, node + 1, y)
        point_bar, normal_bar, force_bar, x_new, y_new = with_drag_adjoint(
            point, normal, force, new_x, new_y, at_b, at_c, bars
        )
        x_bar = new_force_adjoint(frame, bar, a, i, node, x, x_new)
        y_bar = new_force_adjoint(frame, bar, a, i, node + 1, y, y_new)
        more_force, more_normal = drag_of_adjoint(force, normal, (x_bar, y_bar))
    touch.force[i], bar.touch.force[i] = force, force_bar
    accumulate(bar.touch.force, i, more_force)
    accumulate(bar.touch.normal, i, normal_bar)
    accumulate(bar.touch.normal, i, more_normal)
    accumulate(bar.touch.point, i, point_bar)


@kernel
def grafted_springs(frame):
    tree, touch = frame.tree, frame.touch
    for i in range(touch.n):
        for net in range(tree.n_nets):
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                    if is_force(tree.aim_kind[a]):
                        change_force(frame, i, a)


@kernel
def grafted_springs_adjoint(frame, bar):
    tree, touch = frame.tree, frame.touch
    # nothing pushes the world
    bar.work.touch[tree.n_bodies] = zero6(frame.params.world_dt[0])
    for i in range(touch.n):
        net = tree.n_nets - 1
        while net >= 0:
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                a = tree.net_aim[net] + tree.net_aims[net] - 1
                while a >= tree.net_aim[net]:
                    if is_force(tree.aim_kind[a]):
                        change_force_adjoint(frame, bar, i, a)
                    a -= 1
            net -= 1
