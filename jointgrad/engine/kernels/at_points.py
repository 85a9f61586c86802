"""A contact parameter at a point that touches: its own where networks stand at points, else that of its pair.

`own` is a field of the touch, `of_pairs` one of params, such as touch.friction and params.pair_friction; or their cotangents.
"""

from ...compiler.kernel import accumulate, inlined


@inlined
def at_point(frame, own, of_pairs, i, row):
    if frame.tree.n_point_nets != 0:
        return own[i]
    return of_pairs[row]


@inlined
def give_to_point(frame, own, of_pairs, i, row, bar):
    if frame.tree.n_point_nets != 0:
        accumulate(own, i, bar)
    else:
        accumulate(of_pairs, row, bar)
