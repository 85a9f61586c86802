"""Impulses and spring forces -> what contact did to every link: net force, and torque about its centre of mass.

World axes; an impulse counts as the force that gives it in one step. Joint limits, dry friction and loops are no contact.
"""

from .....algebra.spatial import add, moved_pose, neg, scale, sub
from .....algebra.vector import cross, times
from .....compiler.elementary import detached, inverse
from .....compiler.kernel import accumulate, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from ...operators import less, plus, zero3
from .paths import BOUNDED, POINT
from .rows import tangents

READS = (
    "work.pose", "assembly.com", "touch.point", "touch.normal", "touch.force", "block.impulse", "params.world_dt",
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
def link_a(frame, i):
    tree = frame.tree
    return tree.shape_link[tree.pair_a[frame.touch.pair[i]]]


@sweep
def link_b(frame, i):
    tree = frame.tree
    return tree.shape_link[tree.pair_b[frame.touch.pair[i]]]


@sweep
def push_link(frame, i, j, force):
    """A force on link j at point i."""
    output = frame.output
    accumulate(output.force, j, force)
    torque = about_centre(frame.touch.point[i], force, frame.work.pose[frame.tree.link_body[j]], frame.assembly.com[j])
    accumulate(output.torque, j, torque)


@sweep
def push_links(frame, i, force):
    push_link(frame, i, link_a(frame, i), force)
    push_link(frame, i, link_b(frame, i), opposite(force))


@kernel
def contact_wrenches(frame):
    tree, touch, block, output = frame.tree, frame.touch, frame.block, frame.output
    dt = frame.params.world_dt[0]
    for j in range(tree.n_links):
        output.force[j] = output.torque[j] = zero3(dt)
    for i in range(touch.n):
        if tree.pair_has_rows[touch.pair[i]] == 0:
            push_links(frame, i, touch.force[i])
    for k in range(block.n):
        if block.kind[k] != BOUNDED:
            i = block.source[k]
            force = force_of_impulses(touch.normal[i], block.impulse[k], dt)
            if block.kind[k] == POINT:
                push_links(frame, i, force)
            else:
                accumulate(output.torque, link_a(frame, i), force)
                accumulate(output.torque, link_b(frame, i), opposite(force))


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
def push_link_adjoint(frame, bar, i, j, force):
    """Cotangent of the force on link j at point i."""
    tree, work = frame.tree, frame.work
    b = tree.link_body[j]
    point_bar, force_bar, com_bar, pose_bar = moved_about_centre_adjoint(
        frame.touch.point[i],
        force,
        work.pose[b],
        work.pose[tree.reference[b]],
        frame.assembly.com[j],
        bar.output.torque[j],
    )
    accumulate(bar.touch.point, i, point_bar)
    accumulate(bar.assembly.com, j, com_bar)
    accumulate(bar.work.pose, b, pose_bar)
    return plus(force_bar, bar.output.force[j])


@sweep
def push_links_adjoint(frame, bar, i, force):
    a = push_link_adjoint(frame, bar, i, link_a(frame, i), force)
    b = push_link_adjoint(frame, bar, i, link_b(frame, i), opposite(force))
    return less(a, b)


@kernel
def contact_wrenches_adjoint(frame, bar):
    """Adds to all it touches; overwrites bar.block.wrench, the cotangent of the last impulses."""
    touch, block = frame.touch, frame.block
    dt = frame.params.world_dt[0]
    for i in range(touch.n):
        if frame.tree.pair_has_rows[touch.pair[i]] == 0:
            force_bar = push_links_adjoint(frame, bar, i, touch.force[i])
            accumulate(bar.touch.force, i, force_bar)
    for k in range(block.n):
        bar.block.wrench[k] = zero3(dt)
        if block.kind[k] != BOUNDED:
            i, x = block.source[k], block.impulse[k]
            if block.kind[k] == POINT:
                force = force_of_impulses(touch.normal[i], x, dt)
                force_bar = push_links_adjoint(frame, bar, i, force)
            else:
                force_bar = less(bar.output.torque[link_a(frame, i)], bar.output.torque[link_b(frame, i)])
            normal_bar, bar.block.wrench[k], dt_bar = force_of_impulses_adjoint(touch.normal[i], x, dt, force_bar)
            accumulate(bar.touch.normal, i, normal_bar)
            accumulate(bar.params.world_dt, 0, dt_bar)


@sweep
def wrenches_felt(frame, bar):
    """What the wrenches give the impulses, before these are taken back."""
    for k in range(frame.block.n):
        accumulate(bar.block.impulse, k, bar.block.wrench[k])
