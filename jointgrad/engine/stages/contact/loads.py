"""Impulses and spring forces -> what contact did to every link: net force, and torque about its centre of mass.

World axes; an impulse counts as the force that gives it in one step. Joint limits, dry friction and loops are no contact.
"""

from ....algebra.spatial import add, moved_pose, neg, scale, sub
from ....algebra.vector import cross, times
from ....compiler.elementary import detached, inverse
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import IMPULSE
from ...operators import less, plus, zero3
from .paths import BOUNDED, POINT
from .rows import tangents

READS = (
    "work.pose", "assembly.com", "touch.point", "touch.normal", "touch.force", "block.x", "params.world_dt",
)  # fmt: skip
WRITES = ("output.force", "output.torque")


@traced
def force_of_impulses(normal, x, dt):
    """Along normal and tangents, on shape a (N); of turning impulses, the torque (N m)."""
    axes = (normal, *tangents(normal))
    total = tuple(x[0] * a + x[1] * b + x[2] * c for a, b, c in zip(*axes, strict=True))
    return scale(total, inverse(dt))


@traced
def about_centre(point, force, pose, com):
    return cross(sub(point, add(pose[9:], times(pose[:9], com))), force)


@traced
def opposite(force):
    return neg(force)


@sweep
def link_a(tree, touch, i):
    return tree.shape_link[tree.pair_a[touch.pair[i]]]


@sweep
def link_b(tree, touch, i):
    return tree.shape_link[tree.pair_b[touch.pair[i]]]


@sweep
def load_link(tree, assembly, work, touch, output, i, j, force):
    """A force on link j at point i."""
    accumulate(output.force, j, force)
    torque = about_centre(touch.point[i], force, work.pose[tree.link_body[j]], assembly.com[j])
    accumulate(output.torque, j, torque)


@sweep
def load_links(tree, assembly, work, touch, output, i, force):
    load_link(tree, assembly, work, touch, output, i, link_a(tree, touch, i), force)
    load_link(tree, assembly, work, touch, output, i, link_b(tree, touch, i), opposite(force))


@sweep
def last_impulse(tree, block, k):
    x = block.x[tree.sweeps * block.n + k]
    return x[0], x[1], x[2]


@kernel
def loads(tree, params, assembly, work, touch, block, output):
    dt = params.world_dt[0]
    for j in range(tree.n_links):
        output.force[j] = output.torque[j] = zero3(dt)
    for i in range(touch.n):
        if tree.pair_law[touch.pair[i]] != IMPULSE:
            load_links(tree, assembly, work, touch, output, i, touch.force[i])
    for k in range(block.n):
        if block.kind[k] != BOUNDED:
            i = block.source[k]
            force = force_of_impulses(touch.normal[i], last_impulse(tree, block, k), dt)
            if block.kind[k] == POINT:
                load_links(tree, assembly, work, touch, output, i, force)
            else:
                accumulate(output.torque, link_a(tree, touch, i), force)
                accumulate(output.torque, link_b(tree, touch, i), opposite(force))


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def moved_about_centre(point, force, pose, reference, com, delta=(0.0,) * 6):
    """The body moves about the reference point, which itself stays."""
    still = detached(reference[9:])
    moved = moved_pose((*pose[:9], *sub(pose[9:], still)), delta)
    return about_centre.fn(point, force, (*moved[:9], *add(moved[9:], still)), com)


force_of_impulses_adjoint = adjoint(force_of_impulses, "normal x dt")
moved_about_centre_adjoint = adjoint(moved_about_centre, "point force com delta", at_zero="delta")


@sweep
def load_link_adjoint(tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, j, force):
    """Cotangent of the force on link j at point i."""
    b = tree.link_body[j]
    point_bar, force_bar, com_bar, pose_bar = moved_about_centre_adjoint(
        touch.point[i], force, work.pose[b], work.pose[tree.reference[b]], assembly.com[j], output_bar.torque[j]
    )
    accumulate(touch_bar.point, i, point_bar)
    accumulate(assembly_bar.com, j, com_bar)
    accumulate(work_bar.pose, b, pose_bar)
    return plus(force_bar, output_bar.force[j])


@sweep
def load_links_adjoint(tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, force):
    a = load_link_adjoint(
        tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, link_a(tree, touch, i), force
    )
    b = load_link_adjoint(
        tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, link_b(tree, touch, i), opposite(force)
    )  # fmt: skip
    return less(a, b)


@kernel
def loads_adjoint(
    tree, params, params_bar, assembly, assembly_bar, work, work_bar, touch, touch_bar, block, block_bar, output_bar
):  # fmt: skip
    """Adds to all it touches; overwrites block_bar.load, the cotangent of the last impulses."""
    dt = params.world_dt[0]
    for i in range(touch.n):
        if tree.pair_law[touch.pair[i]] != IMPULSE:
            bar = load_links_adjoint(
                tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, touch.force[i]
            )
            accumulate(touch_bar.force, i, bar)
    for k in range(block.n):
        block_bar.load[k] = zero3(dt)
        if block.kind[k] != BOUNDED:
            i, x = block.source[k], last_impulse(tree, block, k)
            if block.kind[k] == POINT:
                force = force_of_impulses(touch.normal[i], x, dt)
                bar = load_links_adjoint(
                    tree, assembly, assembly_bar, work, work_bar, touch, touch_bar, output_bar, i, force
                )
            else:
                bar = less(output_bar.torque[link_a(tree, touch, i)], output_bar.torque[link_b(tree, touch, i)])
            normal_bar, block_bar.load[k], dt_bar = force_of_impulses_adjoint(touch.normal[i], x, dt, bar)
            accumulate(touch_bar.normal, i, normal_bar)
            accumulate(params_bar.world_dt, 0, dt_bar)


@sweep
def loads_felt(block, block_bar):
    """What the loads give the last impulses, before the sweeps run backwards."""
    for k in range(block.n):
        accumulate(block_bar.x, k, block_bar.load[k])
