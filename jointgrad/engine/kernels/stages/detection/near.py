"""What every kind of pair shares: which pairs are near in some lane, which points are kept, where cotangents go."""

from .....algebra.spatial import sub
from .....algebra.vector import column, dot
from .....compiler.elementary import maximum
from .....compiler.kernel import accumulate, any_above, inlined, sweep
from .....compiler.trace import traced
from .....model.arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, TERRAIN

# near and far ------------------------------------------------------------------------------------------------------------


@traced
def short_reach(a):
    """Radius of a sphere."""
    return a[0]


@traced
def capsule_reach(a):
    return a[0] + a[1]


@traced
def box_reach(a):
    """At most the sum of the half extents."""
    return a[0] + a[1] + a[2]


EVERYWHERE = 1e100  # reach of a plane, m: its square is a number still


@traced
def unbounded_reach(a):
    return EVERYWHERE + a[0]


@traced
def mesh_reach(a, radius):
    """By the corner that is farthest from the shape's own position, before its scale."""
    x, y, z = (maximum(s, -s) for s in a)
    return maximum(maximum(x, y), z) * radius


@sweep
def reach_of(frame, i):
    """How far a shape extends from its own position, or more."""
    tree, params = frame.tree, frame.params
    kind = tree.shape_kind[i]
    if kind == PLANE or kind == TERRAIN:
        return unbounded_reach(params.shape_size[i])
    if kind == BOX or kind == ELLIPSOID:
        return box_reach(params.shape_size[i])
    if kind == CAPSULE or kind == CYLINDER:
        return capsule_reach(params.shape_size[i])
    if kind == MESH:
        return mesh_reach(params.shape_size[i], tree.number[tree.shape_data[i] - 5])
    return short_reach(params.shape_size[i])


@traced
def overlap_of_balls(A, reach_a, B, reach_b, margin):
    way, within = sub(A[9:], B[9:]), reach_a + reach_b + margin
    return within * within - dot(way, way)


@traced
def overlap_with_plane(A, reach, B, margin):
    return reach + margin - dot(column(B[:9], 2), sub(A[9:], B[9:]))


@sweep
def may_touch(frame, p):
    tree, touch = frame.tree, frame.touch
    a, b = tree.pair_a[p], tree.pair_b[p]
    overlap = overlap_of_balls(
        touch.shape[a], reach_of(frame, a), touch.shape[b], reach_of(frame, b),
        frame.params.pair_margin[tree.pair_row[p]],
    )  # fmt: skip
    return any_above(overlap, 0.0)


@sweep
def may_touch_plane(frame, p):
    tree, touch = frame.tree, frame.touch
    a, b = tree.pair_a[p], tree.pair_b[p]
    margin = frame.params.pair_margin[tree.pair_row[p]]
    return any_above(overlap_with_plane(touch.shape[a], reach_of(frame, a), touch.shape[b], margin), 0.0)


# noting points -----------------------------------------------------------------------------------------------------------


@traced
def nearness(margin, gap):
    return margin - gap


@sweep
def note(frame, p, part, contact):
    """Keep a point that is near in some lane; where it is kept, or -1."""
    tree, touch = frame.tree, frame.touch
    point, normal, gap = contact
    i = touch.n
    if not any_above(nearness(frame.params.pair_margin[tree.pair_row[p]], gap), 0.0):
        return -1
    if i >= tree.most_touches:
        touch.is_full = 1
        return -1
    touch.pair[i], touch.part[i] = p, part
    touch.point[i], touch.normal[i], touch.gap[i] = point, normal, gap
    touch.n = i + 1
    return i


@inlined
def shapes_of(frame, p):
    """Pose and size of one shape of a pair, then of the other, as operators take them."""
    tree, params, touch = frame.tree, frame.params, frame.touch
    a, b = tree.pair_a[p], tree.pair_b[p]
    return touch.shape[a], params.shape_size[a], touch.shape[b], params.shape_size[b]


@inlined
def bars_of(bar, i):
    """What an operator's reverse is given."""
    return bar.touch.point[i], bar.touch.normal[i], bar.touch.gap[i]


@sweep
def give_back(frame, bar, i, bars):
    tree, touch = frame.tree, frame.touch
    A_bar, B_bar, a_bar, b_bar = bars
    a, b = tree.pair_a[touch.pair[i]], tree.pair_b[touch.pair[i]]
    accumulate(bar.touch.shape, a, A_bar)
    accumulate(bar.touch.shape, b, B_bar)
    accumulate(bar.params.shape_size, a, a_bar)
    accumulate(bar.params.shape_size, b, b_bar)


@sweep
def sign_of(bit):
    return 1.0 if bit != 0 else -1.0
