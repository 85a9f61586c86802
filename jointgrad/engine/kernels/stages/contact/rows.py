"""Points that touch -> rows of the contact problem, and how the trees answer a unit impulse along each.

Rows come in blocks of three: normal and two tangents of a point; turning about normal and tangents (torsion, rolling);
three scalar rows of joints or loops (constraints.py). Everything is about the reference point of a tree in world axes, so that
a row passes down its path unchanged but for what the joints take (Featherstone 2008, sec. 7.3, on forces alone). With
the effort u that a row leaves at each joint, and its force f on a free root, A = f^T IA^-1 f + sum of u u^T / D over
the joints that two rows share: M^-1 is never formed.
"""

from .....algebra.rotation import tangents
from .....algebra.spatial import add, neg, scale, sub
from .....algebra.spatial import work as motion_work
from .....algebra.vector import cross, outer
from .....compiler.elementary import detached, inverse, maximum, minimum, select
from .....compiler.kernel import accumulate, any_above, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from ...at_points import at_point
from ...operators import zero, zero9
from .constraints import constraint_blocks
from .give import lightness_at, lightnesses, softened, softness_of
from .paths import POINT, SPIN, joined, list_members, open_block, reach_roots, three, tree_of

# restitution from which on a pair falls through its margin freely, and bounces when it has: below, it is braked there, the less
# the more it bounces, so that the law is continuous where restitution begins
BOUNCES = 0.01
# m/s: what bounces is pushed out no faster
GENTLE = 0.025
# share of its compliance that a pair which bounces has in the convex law
FIRM_BOUNCE = 0.02


def forces_at(point, reference, axes):
    """Unit forces along three axes at a point, about the reference point."""
    arm = sub(point, detached(reference[9:]))
    return joined((*cross(arm, axis), *axis) for axis in axes)


@traced
def point_rows(point, normal, reference_a, reference_b):
    """Forces of unit impulses along normal and tangents on body a, and the opposite ones on body b."""
    axes = (normal, *tangents(normal))
    return forces_at(point, reference_a, axes), neg(forces_at(point, reference_b, axes))


@traced
def spin_rows(normal):
    rows = joined((*axis, 0.0, 0.0, 0.0) for axis in (normal, *tangents(normal)))
    return rows, neg(rows)


@traced
def closing(rows_a, v_a, a_joints_a, rows_b, v_b, a_joints_b, dt):
    """Velocity along the rows if there were no impulse."""
    a, b = add(v_a, scale(a_joints_a, dt)), add(v_b, scale(a_joints_b, dt))
    return tuple(motion_work(a, f) + motion_work(b, g) for f, g in zip(three(rows_a), three(rows_b), strict=True))


@traced
def approach_of(rows_a, v_a, rows_b, v_b):
    """Velocity along the normal before anything pushed or pulled."""
    return motion_work(v_a, rows_a[:6]) + motion_work(v_b, rows_b[:6])


def brake(restitution):
    """The share of the margin's brake that is left: all of it without restitution, none from BOUNCES on."""
    return 1.0 - restitution * (1.0 / BOUNCES)


def touches(gap, margin, restitution):
    """Within the margin; what bounces falls through the margin freely."""
    return select(0.0 > gap, margin, select(brake(restitution) > 0.0, margin, 0.0)) > gap


@traced
def is_touching(gap, margin, restitution):
    return (select(touches(gap, margin, restitution), 1.0, 0.0),) * 3


def push_out(push_limit, braked):
    """Fastest speed of stabilisation. What bounces overlaps by what it moves in a step, and is on its way out: to push it, against
    the mass that is felt along a normal that hardly moves, would be energy from nowhere."""
    slow = minimum(push_limit, GENTLE)
    return select(braked > 0.0, slow + braked * (push_limit - slow), slow)


def target_speed(approach, gap, restitution, stabilisation, push_limit, dt):
    """The normal velocity that a contact shall not fall below.

    Overlapping: what opens the gap (Baumgarte), or the bounce if that is faster. What already parts may come back at its share of
    that speed: with one restitution for all contacts and no friction the kinetic energy then cannot grow (Moreau 1988).
    Above the surface: a share of the gap may close in a step, the same as is opened below it, so that a resting contact is smooth
    in both directions; a larger one the more a pair bounces.
    """
    braked = brake(restitution)
    parting = minimum(-(stabilisation * gap * inverse(dt)), push_out(push_limit, braked))
    bounce = -(restitution * approach)
    below = select(0.0 > approach, maximum(parting, bounce), parting + bounce)
    above = parting * inverse(select(braked > 0.0, braked, 1.0))
    return select(0.0 > gap, below, above)


@traced
def bouncing_compliance(compliance, restitution):
    """What gives way does not come back as fast as restitution says: what bounces gives the less, as it is braked the less."""
    braked = brake(restitution)
    return compliance * (FIRM_BOUNCE + (1.0 - FIRM_BOUNCE) * select(braked > 0.0, braked, 0.0))


@traced
def point_demand(closing, approach, gap, restitution, stabilisation, push_limit, margin, dt):
    """What the impulse must undo."""
    target = target_speed(approach, gap, restitution, stabilisation, push_limit, dt)
    is_active = touches(gap, margin, restitution)
    return tuple(select(is_active, x, 0.0) for x in (closing[0] - target, *closing[1:]))


@traced
def spin_demand(closing, gap, restitution, margin):
    is_active = touches(gap, margin, restitution)
    return tuple(select(is_active, x, 0.0) for x in closing)


@traced
def bounce_of(active, gap, restitution):
    """The restitution of a point that overlaps and counts."""
    return select(active[0] > 0.5, select(0.0 > gap, restitution, 0.0), 0.0)


# blocks -----------------------------------------------------------------------------------------------------------------


@sweep
def point_block(frame, i):
    """Normal and tangents of a point that touches."""
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    p, dt = touch.pair[i], params.world_dt[0]
    row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    k = open_block(frame, POINT, i, a, b)
    block.rows[2 * k], block.rows[2 * k + 1] = point_rows(
        touch.point[i], touch.normal[i], work.pose[tree.reference[a]], work.pose[tree.reference[b]]
    )
    block.closing[k] = closing(
        block.rows[2 * k], work.v[a], work.a_joints[a], block.rows[2 * k + 1], work.v[b], work.a_joints[b], dt
    )
    block.approach[k] = approach_of(block.rows[2 * k], work.v[a], block.rows[2 * k + 1], work.v[b])
    restitution = at_point(frame, touch.restitution, params.pair_restitution, i, row)
    block.b[k] = point_demand(
        block.closing[k], block.approach[k], touch.gap[i], restitution, params.pair_baumgarte[row],
        params.pair_max_push_out_speed[row], params.pair_margin[row], dt,
    )  # fmt: skip
    finish(frame, i, k, row, restitution)
    if any_above(bounce_of(block.active[k], touch.gap[i], restitution), 0.0):
        block.bounces = 1


@sweep
def spin_block(frame, i):
    """Turning about the normal and the tangents of the same point; it follows the point's own block."""
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    p, dt = touch.pair[i], params.world_dt[0]
    row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    k = open_block(frame, SPIN, i, a, b)
    block.rows[2 * k], block.rows[2 * k + 1] = spin_rows(touch.normal[i])
    block.closing[k] = closing(
        block.rows[2 * k], work.v[a], work.a_joints[a], block.rows[2 * k + 1], work.v[b], work.a_joints[b], dt
    )
    restitution = at_point(frame, touch.restitution, params.pair_restitution, i, row)
    block.b[k] = spin_demand(block.closing[k], touch.gap[i], restitution, params.pair_margin[row])
    finish(frame, i, k, row, restitution)


@sweep
def finish(frame, i, k, row, restitution):
    params, touch, block = frame.params, frame.touch, frame.block
    block.active[k] = is_touching(touch.gap[i], params.pair_margin[row], restitution)
    block.friction[k] = (
        at_point(frame, touch.friction, params.pair_friction, i, row), params.pair_torsion[row], params.pair_rolling[row],
    )  # fmt: skip
    looseness = lightness_at(frame, k) if block.kind[k] == POINT else zero(params.world_dt[0])
    compliance = params.pair_compliance[row]
    if frame.tree.is_implicit != 0:
        compliance = bouncing_compliance(compliance, restitution)
    block.give[k] = compliance, params.pair_softness[row], looseness
    reach_roots(frame, k)


@kernel
def blocks(frame):
    tree, touch, block = frame.tree, frame.touch, frame.block
    block.n = 0
    block.bounces = block.restrained = 0
    if touch.n != 0 or (tree.is_implicit != 0 and tree.n_constraints != 0):
        lightnesses(frame)
    if tree.n_constraints != 0:
        constraint_blocks(frame)
    for i in range(touch.n):
        p = touch.pair[i]
        if tree.pair_has_rows[p] != 0:
            if block.n + tree.pair_spins[p] >= tree.most_blocks:
                touch.is_full = 1
            else:
                point_block(frame, i)
                if tree.pair_spins[p] != 0:
                    spin_block(frame, i)


# couplings --------------------------------------------------------------------------------------------------------------


@traced
def with_root(A, at_root, answer):
    return add(A, tuple(motion_work(z, f) for f in three(at_root) for z in three(answer)))


@traced
def with_joint(A, effort, other, D_inv):
    return add(A, outer(scale(effort, D_inv), other))


@traced
def transposed_block(A):
    return tuple(A[3 * j + i] for i in range(3) for j in range(3))


@sweep
def list_couplings(frame):
    """Neighbours of every block in order, and where the same coupling is seen from the other side."""
    tree, block = frame.tree, frame.block
    n, p, world = block.n, 0, tree.n_trees
    list_members(frame)
    for k in range(n):
        block.first[k] = p
        a, b = tree_of(frame, 2 * k), tree_of(frame, 2 * k + 1)
        i = j = i_end = j_end = 0
        if a < world:
            i, i_end = block.member_first[a], block.member_first[a + 1]
        if b < world:
            j, j_end = block.member_first[b], block.member_first[b + 1]
        while i < i_end or j < j_end:
            # the next of two lists in order; a block on both trees is in both
            s = n
            if i < i_end:
                s = block.member[i] // 2
            if j < j_end and block.member[j] // 2 < s:
                s = block.member[j] // 2
            if i < i_end and block.member[i] // 2 == s:
                i += 1
            if j < j_end and block.member[j] // 2 == s:
                j += 1
            if p >= tree.most_couplings:
                frame.touch.is_full = 1
                block.n = 0
                return
            block.other[p] = s
            if s == k:
                block.own[k] = p
            p += 1
    block.first[n] = p
    list_mirrors(frame)


@sweep
def list_mirrors(frame):
    """seen[s] counts the blocks before k that have s as neighbour."""
    block = frame.block
    n = block.n
    for k in range(n):
        block.seen[k] = 0
    for k in range(n):
        for p in range(block.first[k], block.first[k + 1]):
            s = block.other[p]
            block.mirror[p] = block.first[s] + block.seen[s]
            block.seen[s] = block.seen[s] + 1


@inlined
def shared_response(frame, i, j, A):
    """Add to A what sides i and j feel of each other: through a common free root, and through common joints."""
    tree, block = frame.tree, frame.block
    if block.root[i] >= 0 and block.root[i] == block.root[j]:
        A = with_root(A, block.at_root[i], block.answer[j])
    a, b, L = block.body[i], block.body[j], tree.most_path
    first_a, first_b = tree.path_first[a], tree.path_first[b]
    place = max(block.fork[i], block.fork[j])
    end = min(tree.path_length[a], tree.path_length[b])
    while place < end and tree.path[first_a + place] == tree.path[first_b + place]:
        d = tree.path[first_a + place]
        A = with_joint(A, block.effort[i * L + place], block.effort[j * L + place], frame.work.D_inv[d])
        place += 1
    return A


@inlined
def coupling(frame, k, s):
    """A between two blocks."""
    A = zero9(frame.params.world_dt[0])
    for i in range(2 * k, 2 * k + 2):
        for j in range(2 * s, 2 * s + 2):
            A = shared_response(frame, i, j, A)
    return A


@inlined
def own_coupling(frame, k):
    """A of a block with itself; leaves block.soft."""
    block = frame.block
    A = coupling(frame, k, k)
    block.soft[k] = softness_of(frame, k, A)
    return softened(A, block.soft[k])


@kernel
def couplings(frame):
    """A, block by block; the upper half is computed, the lower is its mirror image."""
    block = frame.block
    list_couplings(frame)
    for k in range(block.n):
        for p in range(block.first[k], block.first[k + 1]):
            s = block.other[p]
            if s == k:
                block.A[p] = own_coupling(frame, k)
            elif s > k:
                A = coupling(frame, k, s)
                block.A[p], block.A[block.mirror[p]] = A, transposed_block(A)


@kernel
def own_couplings(frame):
    """A of every block with itself, where running sums stand for the rest."""
    block = frame.block
    for k in range(block.n):
        block.first[k] = block.other[k] = block.own[k] = block.mirror[k] = k
        block.A[k] = own_coupling(frame, k)
    block.first[block.n] = block.n


point_rows_adjoint = adjoint(point_rows, "point normal")
bouncing_compliance_adjoint = adjoint(bouncing_compliance, "compliance restitution")
spin_rows_adjoint = adjoint(spin_rows, "normal")
point_demand_adjoint = adjoint(point_demand, "closing approach gap restitution stabilisation push_limit dt")
spin_demand_adjoint = adjoint(spin_demand, "closing")


@traced
def plus_normal(rows_bar, approach_bar, v):
    """Cotangent of three rows with what the approach, the normal row times a velocity, gives the first of them."""
    return (*add(rows_bar[:6], scale(v, approach_bar)), *rows_bar[6:])


@traced
def pulled_along(rows, approach_bar):
    return scale(rows[:6], approach_bar)


@sweep
def with_approach(frame, bar, k, bars, approach_bar):
    """Reverse of approach_of: cotangents of rows, to which it adds; those of velocities are left in bar.work.v."""
    work, block = frame.work, frame.block
    a, b = block.body[2 * k], block.body[2 * k + 1]
    accumulate(bar.work.v, a, pulled_along(block.rows[2 * k], approach_bar))
    accumulate(bar.work.v, b, pulled_along(block.rows[2 * k + 1], approach_bar))
    return plus_normal(bars[0], approach_bar, work.v[a]), plus_normal(bars[1], approach_bar, work.v[b])
