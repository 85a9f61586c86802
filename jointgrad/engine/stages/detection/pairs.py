"""The loops over pairs of shapes, a kernel for each kind of pair: compiled only for robots that have it.

A kernel goes through the pairs first..last of a run, leaves out those whose shapes are far apart in every lane, and
notes every candidate point that is near in some lane. Its reverse works on one point that was noted, `touch.first`.
"""

from ....algebra.spatial import sub
from ....algebra.vector import column, dot
from ....compiler.kernel import accumulate, any_above, inlined, kernel, sweep
from ....compiler.trace import traced
from ....model.arrays import BOX, CAPSULE, PLANE
from .boxes import (
    box_box_clip,
    box_box_clip_adjoint,
    box_box_corner,
    box_box_corner_adjoint,
    box_box_edge,
    box_box_edge_adjoint,
    box_box_features,
    box_capsule,
    box_capsule_adjoint,
    box_capsule_features,
    box_sphere,
    box_sphere_adjoint,
)
from .capsules import (
    capsule_capsule,
    capsule_capsule_adjoint,
    capsule_plane,
    capsule_plane_adjoint,
    capsule_sphere,
    capsule_sphere_adjoint,
)
from .points import (
    box_plane,
    box_plane_adjoint,
    sphere_plane,
    sphere_plane_adjoint,
    sphere_sphere,
    sphere_sphere_adjoint,
)

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


@sweep
def reach_of(frame, i):
    """How far a shape extends from its own position, or more."""
    tree, params = frame.tree, frame.params
    if tree.shape_kind[i] == PLANE:
        return unbounded_reach(params.shape_size[i])
    if tree.shape_kind[i] == BOX:
        return box_reach(params.shape_size[i])
    if tree.shape_kind[i] == CAPSULE:
        return capsule_reach(params.shape_size[i])
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


# kinds of pairs ----------------------------------------------------------------------------------------------------------


@kernel
def sphere_plane_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch_plane(frame, p):
            A, a, B, b = shapes_of(frame, p)
            note(frame, p, 0, sphere_plane(A, a, B, b))


@kernel
def sphere_plane_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = sphere_plane_adjoint(A, a, B, b, bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def capsule_plane_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch_plane(frame, p):
            for part in range(2):
                A, a, B, b = shapes_of(frame, p)
                contact = capsule_plane(A, a, B, b, sign_of(part))
                note(frame, p, part, contact)


@kernel
def capsule_plane_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = capsule_plane_adjoint(A, a, B, b, sign_of(touch.part[i]), bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def box_plane_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch_plane(frame, p):
            for part in range(8):
                A, a, B, b = shapes_of(frame, p)
                contact = box_plane(A, a, B, b, sign_of(part & 1), sign_of(part & 2), sign_of(part & 4))
                note(frame, p, part, contact)


@kernel
def box_plane_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    part = touch.part[i]
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = box_plane_adjoint(A, a, B, b, sign_of(part & 1), sign_of(part & 2), sign_of(part & 4), bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def sphere_sphere_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            A, a, B, b = shapes_of(frame, p)
            note(frame, p, 0, sphere_sphere(A, a, B, b))


@kernel
def sphere_sphere_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = sphere_sphere_adjoint(A, a, B, b, bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def capsule_sphere_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            A, a, B, b = shapes_of(frame, p)
            note(frame, p, 0, capsule_sphere(A, a, B, b))


@kernel
def capsule_sphere_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = capsule_sphere_adjoint(A, a, B, b, bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def capsule_capsule_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            for part in range(2):
                A, a, B, b = shapes_of(frame, p)
                contact = capsule_capsule(A, a, B, b, sign_of(part))
                note(frame, p, part, contact)


@kernel
def capsule_capsule_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = capsule_capsule_adjoint(A, a, B, b, sign_of(touch.part[i]), bars_of(bar, i))
    give_back(frame, bar, i, bars)


@kernel
def box_sphere_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            A, a, B, b = shapes_of(frame, p)
            note(frame, p, 0, box_sphere(A, a, B, b))


@kernel
def box_sphere_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = box_sphere_adjoint(A, a, B, b, bars_of(bar, i))
    give_back(frame, bar, i, bars)


@traced
def seven(features):
    return (*features, *(0.0,) * (7 - len(features)))


@kernel
def box_capsule_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            A, a, B, b = shapes_of(frame, p)
            features = seven(box_capsule_features(A, a, B, b))
            for part in range(2):
                i = note(frame, p, part, box_capsule(A, a, B, b, features[:6], sign_of(part)))
                if i >= 0:
                    touch.feature[i] = features


@kernel
def box_capsule_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    A, a, B, b = shapes_of(frame, touch.pair[i])
    bars = box_capsule_adjoint(A, a, B, b, touch.feature[i][:6], sign_of(touch.part[i]), bars_of(bar, i))
    give_back(frame, bar, i, bars)


# parts of two boxes: where the four edges of the incident face enter the reference face, where they leave it, the four
# corners of the reference face, and the crossing of two edges
ENTERS, LEAVES, CORNERS, CROSSING = 0, 4, 8, 12


@sweep
def round_x(part):
    """Signs of the corners of a face in the order round it."""
    return 1.0 if part % 4 == 0 or part % 4 == 3 else -1.0


@sweep
def round_y(part):
    return 1.0 if part % 4 < 2 else -1.0


@sweep
def box_box_part(A, a, B, b, features, part):
    x, y = round_x(part), round_y(part)
    if part < CORNERS:
        return box_box_clip(A, a, B, b, features, x, y, -1.0 if part < LEAVES else 1.0)
    if part < CROSSING:
        return box_box_corner(A, a, B, b, features, x, y)
    return box_box_edge(A, a, B, b, features)


@kernel
def box_box_pairs(frame):
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if may_touch(frame, p):
            A, a, B, b = shapes_of(frame, p)
            features = box_box_features(A, a, B, b)
            for part in range(CROSSING + 1):
                i = note(frame, p, part, box_box_part(A, a, B, b, features, part))
                if i >= 0:
                    touch.feature[i] = features


@kernel
def box_box_pairs_adjoint(frame, bar):
    touch = frame.touch
    i = touch.first
    part, features, bars = touch.part[i], touch.feature[i], bars_of(bar, i)
    A, a, B, b = shapes_of(frame, touch.pair[i])
    x, y = round_x(part), round_y(part)
    if part < CORNERS:
        back = box_box_clip_adjoint(A, a, B, b, features, x, y, -1.0 if part < LEAVES else 1.0, bars)
    elif part < CROSSING:
        back = box_box_corner_adjoint(A, a, B, b, features, x, y, bars)
    else:
        back = box_box_edge_adjoint(A, a, B, b, features, bars)
    give_back(frame, bar, i, back)
