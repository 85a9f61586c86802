"""Networks at points that touch: one run for each point of their pairs, between detection and the laws of contact.

Depth, friction, restitution, stiffness and damping of a point are its own where a model has such networks (touch.friction and so
on stand in for the rows of pair parameters, see engine/at_points.py). Forces of springs are changed after the springs. Where a
point does not touch in an environment nothing changes there: it is only listed because it touches in another.
"""

from ....algebra.rotation import tangents
from ....algebra.spatial import add, scale, sub
from ....algebra.vector import cross, dot
from ....compiler.elementary import detached, select
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import IMPULSE
from ....model.grafts import (
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
def first_node(tree, i):
    return tree.n_nodes + i * tree.n_point_nodes


@inlined
def first_kept(tree, i):
    return tree.n_aims + i * tree.n_point_kept


@inlined
def is_force(kind):
    return kind == POINT_PRESS or kind == POINT_DRAG


# values of a point ------------------------------------------------------------------------------------------------------------


@inlined
def value_of(touch, kind, i):
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
def set_value(touch, kind, i, value):
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
def margin_at(tree, params, touch, i):
    """How far away a point counts as touching: springs begin at the surface."""
    p = touch.pair[i]
    if tree.pair_law[p] == IMPULSE:
        return params.pair_margin[tree.pair_row[p]]
    return zero(params.world_dt[0])


@sweep
def change_point(tree, params, work, touch, i, a):
    kind, node = tree.aim_kind[a], first_node(tree, i) + tree.aim_node[a]
    if not is_force(kind):
        base = value_of(touch, kind, i)
        work.kept[first_kept(tree, i) + tree.aim_kept[a]] = same(base)
        new = combined(tree, a, base, work.node[node], zero(params.world_dt[0]))
        if kind == POINT_DEPTH:
            new = where_it_touches(touch.gap[i], margin_at(tree, params, touch, i), new, base)
        set_value(touch, kind, i, new)


@sweep
def change_point_adjoint(tree, params, work, work_bar, touch, touch_bar, i, a):
    kind, node = tree.aim_kind[a], first_node(tree, i) + tree.aim_node[a]
    if not is_force(kind):
        base, bar = work.kept[first_kept(tree, i) + tree.aim_kept[a]], value_of(touch_bar, kind, i)
        set_value(touch, kind, i, base)
        left = zero(bar)
        if kind == POINT_DEPTH:
            bar, left = where_it_touches_adjoint(touch.gap[i], margin_at(tree, params, touch, i), base, base, bar)
        base_bar, said_bar, _ = combined_adjoint(tree, a, base, work.node[node], zero(params.world_dt[0]), bar)
        accumulate(work_bar.node, node, said_bar)
        set_value(touch_bar, kind, i, plus(base_bar, left))


@sweep
def own_values(tree, params, touch, i):
    row = tree.pair_row[touch.pair[i]]
    touch.friction[i], touch.restitution[i] = same(params.pair_friction[row]), same(params.pair_restitution[row])
    touch.stiffness[i], touch.damping[i] = same(params.pair_stiffness[row]), same(params.pair_damping[row])


@sweep
def own_values_adjoint(tree, params_bar, touch, touch_bar, i):
    row = tree.pair_row[touch.pair[i]]
    accumulate(params_bar.pair_friction, row, touch_bar.friction[i])
    accumulate(params_bar.pair_restitution, row, touch_bar.restitution[i])
    accumulate(params_bar.pair_stiffness, row, touch_bar.stiffness[i])
    accumulate(params_bar.pair_damping, row, touch_bar.damping[i])


@kernel
def point_grafts(tree, params, assembly, state, work, touch):
    for i in range(touch.n):
        own_values(tree, params, touch, i)
        for net in range(tree.n_nets):
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                first = first_node(tree, i)
                for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                    see(tree, assembly, state, work, s, first + tree.sense_node[s])
                    see_point(tree, assembly, work, touch, i, s, first + tree.sense_node[s])
                run_network(tree, params, work, net, first + tree.net_node[net])
                for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                    change_point(tree, params, work, touch, i, a)


@kernel
def point_grafts_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state_bar, work, work_bar, touch, touch_bar, call
):  # fmt: skip
    for i in range(touch.n):
        net = tree.n_nets - 1
        while net >= 0:
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                first, a = first_node(tree, i), tree.net_aim[net] + tree.net_aims[net] - 1
                while a >= tree.net_aim[net]:
                    change_point_adjoint(tree, params, work, work_bar, touch, touch_bar, i, a)
                    a -= 1
                run_network_adjoint(
                    tree, params, params_bar, work, work_bar, net, first + tree.net_node[net], call.wants_params
                )
                for s in range(tree.net_sense[net], tree.net_sense[net] + tree.net_senses[net]):
                    node = first + tree.sense_node[s]
                    see_adjoint(tree, assembly, assembly_bar, state_bar, work, work_bar, s, node)
                    see_point_adjoint(tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, i, s, node)
            net -= 1
        own_values_adjoint(tree, params_bar, touch, touch_bar, i)


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
def new_force(tree, params, work, touch, a, i, node, base):
    """One component, where the point touches."""
    none = zero(params.world_dt[0])
    return where_it_touches(touch.gap[i], none, combined(tree, a, base, work.node[node], none), base)


@sweep
def change_force(tree, params, work, touch, i, a):
    p, node, kept = touch.pair[i], first_node(tree, i) + tree.aim_node[a], first_kept(tree, i) + tree.aim_kept[a]
    b, c = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    at_b, at_c = work.pose[tree.reference[b]], work.pose[tree.reference[c]]
    point, normal, force = touch.point[i], touch.normal[i], touch.force[i]
    work.kept[kept], work.kept[kept + 1], work.kept[kept + 2] = force[0], force[1], force[2]
    if tree.aim_kind[a] == POINT_PRESS:
        new = new_force(tree, params, work, touch, a, i, node, press_of(force, normal))
        touch.force[i], push, back = with_press(point, normal, force, new, at_b, at_c)
    else:
        x, y = drag_of(force, normal)
        new_x = new_force(tree, params, work, touch, a, i, node, x)
        new_y = new_force(tree, params, work, touch, a, i, node + 1, y)
        touch.force[i], push, back = with_drag(point, normal, force, new_x, new_y, at_b, at_c)
    accumulate(work.touch, b, push)
    accumulate(work.touch, c, back)


@inlined
def new_force_adjoint(tree, params, work, work_bar, touch, a, i, node, base, bar):
    """Cotangent of the component that was there; adds to that of what was said."""
    none = zero(params.world_dt[0])
    changed_bar, left = where_it_touches_adjoint(touch.gap[i], none, base, base, bar)
    base_bar, said_bar, _ = combined_adjoint(tree, a, base, work.node[node], none, changed_bar)
    accumulate(work_bar.node, node, said_bar)
    return plus(base_bar, left)


@sweep
def change_force_adjoint(tree, params, work, work_bar, touch, touch_bar, i, a):
    p, node, kept = touch.pair[i], first_node(tree, i) + tree.aim_node[a], first_kept(tree, i) + tree.aim_kept[a]
    b, c = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    at_b, at_c = work.pose[tree.reference[b]], work.pose[tree.reference[c]]
    point, normal, force = touch.point[i], touch.normal[i], (work.kept[kept], work.kept[kept + 1], work.kept[kept + 2])
    bars = (touch_bar.force[i], work_bar.touch[b], work_bar.touch[c])
    if tree.aim_kind[a] == POINT_PRESS:
        press = press_of(force, normal)
        new = new_force(tree, params, work, touch, a, i, node, press)
        point_bar, normal_bar, force_bar, new_bar = with_press_adjoint(point, normal, force, new, at_b, at_c, bars)
        press_bar = new_force_adjoint(tree, params, work, work_bar, touch, a, i, node, press, new_bar)
        more_force, more_normal = press_of_adjoint(force, normal, press_bar)
    else:
        x, y = drag_of(force, normal)
        new_x = new_force(tree, params, work, touch, a, i, node, x)
        new_y = new_force(tree, params, work, touch, a, i, node + 1, y)
        point_bar, normal_bar, force_bar, x_new, y_new = with_drag_adjoint(
            point, normal, force, new_x, new_y, at_b, at_c, bars
        )
        x_bar = new_force_adjoint(tree, params, work, work_bar, touch, a, i, node, x, x_new)
        y_bar = new_force_adjoint(tree, params, work, work_bar, touch, a, i, node + 1, y, y_new)
        more_force, more_normal = drag_of_adjoint(force, normal, (x_bar, y_bar))
    touch.force[i], touch_bar.force[i] = force, force_bar
    accumulate(touch_bar.force, i, more_force)
    accumulate(touch_bar.normal, i, normal_bar)
    accumulate(touch_bar.normal, i, more_normal)
    accumulate(touch_bar.point, i, point_bar)


@kernel
def grafted_springs(tree, params, work, touch):
    for i in range(touch.n):
        for net in range(tree.n_nets):
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                for a in range(tree.net_aim[net], tree.net_aim[net] + tree.net_aims[net]):
                    if is_force(tree.aim_kind[a]):
                        change_force(tree, params, work, touch, i, a)


@kernel
def grafted_springs_adjoint(tree, params, work, work_bar, touch, touch_bar):
    # nothing pushes the world
    work_bar.touch[tree.n_bodies] = zero6(params.world_dt[0])
    for i in range(touch.n):
        net = tree.n_nets - 1
        while net >= 0:
            if tree.net_row[net] == tree.pair_row[touch.pair[i]]:
                a = tree.net_aim[net] + tree.net_aims[net] - 1
                while a >= tree.net_aim[net]:
                    if is_force(tree.aim_kind[a]):
                        change_force_adjoint(tree, params, work, work_bar, touch, touch_bar, i, a)
                    a -= 1
            net -= 1
