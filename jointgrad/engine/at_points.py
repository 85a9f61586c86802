"""Values of contact parameters at a point that touches: its own where networks stand at points, else those of its pair."""

from ..compiler.kernel import accumulate, inlined


@inlined
def friction_at(tree, params, touch, i, row):
    if tree.n_point_nets != 0:
        return touch.friction[i]
    return params.pair_friction[row]


@inlined
def restitution_at(tree, params, touch, i, row):
    if tree.n_point_nets != 0:
        return touch.restitution[i]
    return params.pair_restitution[row]


@inlined
def stiffness_at(tree, params, touch, i, row):
    if tree.n_point_nets != 0:
        return touch.stiffness[i]
    return params.pair_stiffness[row]


@inlined
def damping_at(tree, params, touch, i, row):
    if tree.n_point_nets != 0:
        return touch.damping[i]
    return params.pair_damping[row]


# the reverse


@inlined
def give_friction(tree, params_bar, touch_bar, i, row, bar):
    if tree.n_point_nets != 0:
        accumulate(touch_bar.friction, i, bar)
    else:
        accumulate(params_bar.pair_friction, row, bar)


@inlined
def give_restitution(tree, params_bar, touch_bar, i, row, bar):
    if tree.n_point_nets != 0:
        accumulate(touch_bar.restitution, i, bar)
    else:
        accumulate(params_bar.pair_restitution, row, bar)


@inlined
def give_stiffness(tree, params_bar, touch_bar, i, row, bar):
    if tree.n_point_nets != 0:
        accumulate(touch_bar.stiffness, i, bar)
    else:
        accumulate(params_bar.pair_stiffness, row, bar)


@inlined
def give_damping(tree, params_bar, touch_bar, i, row, bar):
    if tree.n_point_nets != 0:
        accumulate(touch_bar.damping, i, bar)
    else:
        accumulate(params_bar.pair_damping, row, bar)
