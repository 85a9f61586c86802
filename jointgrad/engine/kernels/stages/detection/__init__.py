"""Poses of bodies -> points where shapes touch, their normals (from shape b to shape a) and gaps.

A search may branch and picks features, which are kept; operators compute point, normal and gap from them and are what
is differentiated, in poses and in sizes. Pairs come in runs of one kind between two trees; trees that are far apart in
every lane are left out as a whole, so that robots which do not meet cost little.
"""

from .....algebra.spatial import add, composed, sub
from .....algebra.vector import cross, dot, transposed_times
from .....compiler.elementary import maximum, safe_norm
from .....compiler.kernel import accumulate, any_above, kernel, sweep
from .....compiler.trace import traced
from ...operators import zero
from .near import reach_of
from .pairs import search, search_adjoint

READS = ("work.pose", "assembly.shape", "params.shape_size", "params.pair_margin")
WRITES = ("touch.shape", "touch.extent", "touch.point", "touch.normal", "touch.gap", "touch.feature", "touch.geometry")


@traced
def shape_in_world(pose, shape):
    return composed(pose, shape)


@traced
def wider(extent, shape, reference, reach):
    return maximum(extent, safe_norm(sub(shape[9:], reference[9:])) + reach)


@traced
def larger(a, b):
    return maximum(a, b)


@traced
def overlap_of_trees(reference_a, extent_a, reference_b, extent_b, margin):
    way, within = sub(reference_a[9:], reference_b[9:]), extent_a + extent_b + margin
    return within * within - dot(way, way)


@sweep
def place_shapes(frame):
    tree, work, touch = frame.tree, frame.work, frame.touch
    for t in range(tree.n_trees):
        touch.extent[t] = zero(frame.params.world_dt[0])
    for i in range(tree.n_shapes):
        b = tree.shape_body[i]
        touch.shape[i] = shape_in_world(work.pose[b], frame.assembly.shape[i])
        if b < tree.n_bodies and tree.has_tree_pairs != 0:
            t = tree.body_tree[b]
            touch.extent[t] = wider(touch.extent[t], touch.shape[i], work.pose[tree.reference[b]], reach_of(frame, i))


@sweep
def widest_margin(frame):
    """Of all pairs: from how far away trees are looked at."""
    tree, params = frame.tree, frame.params
    margin = zero(params.world_dt[0])
    if tree.has_tree_pairs != 0:
        for row in range(tree.n_pair_rows):
            margin = larger(margin, params.pair_margin[row])
    return margin


@sweep
def trees_may_touch(frame, run, margin):
    """Whether two trees are near each other in some lane; the world, and a tree itself, always are."""
    tree, work, touch = frame.tree, frame.work, frame.touch
    s, t = tree.run_tree_a[run], tree.run_tree_b[run]
    if s == t or s == tree.n_trees or t == tree.n_trees:
        return True
    a, b = tree.tree_body[tree.tree_first[s]], tree.tree_body[tree.tree_first[t]]
    overlap = overlap_of_trees(
        work.pose[tree.reference[a]], touch.extent[s], work.pose[tree.reference[b]], touch.extent[t], margin
    )
    return any_above(overlap, 0.0)


@kernel
def detection(frame):
    tree, touch = frame.tree, frame.touch
    place_shapes(frame)
    touch.n = 0
    margin = widest_margin(frame)
    for run in range(tree.n_runs):
        if trees_may_touch(frame, run, margin):
            touch.first = tree.run_first[run]
            touch.last = tree.run_first[run + 1]
            search(frame, tree.run_kind[run])


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def on_body(pose, reference, shape, force):
    """A force on a shape about its own position: on its body about the reference point, and in the body's own frame."""
    arm = sub(shape[9:], reference[9:])
    turn = add(force[:3], cross(sub(shape[9:], pose[9:]), force[3:]))
    local = (*transposed_times(pose[:9], turn), *transposed_times(pose[:9], force[3:]))
    return (*add(force[:3], cross(arm, force[3:])), *force[3:]), local


@kernel
def detection_adjoint(frame, bar):
    """Adds to the cotangents of poses, placements and sizes."""
    tree, work, touch = frame.tree, frame.work, frame.touch
    for i in range(touch.n):
        touch.first = i
        search_adjoint(frame, bar, tree.pair_kind[touch.pair[i]])
    for i in range(tree.n_shapes):
        b = tree.shape_body[i]
        pose_bar, shape_bar = on_body(work.pose[b], work.pose[tree.reference[b]], touch.shape[i], bar.touch.shape[i])
        accumulate(bar.work.pose, b, pose_bar)
        accumulate(bar.assembly.shape, i, shape_bar)
