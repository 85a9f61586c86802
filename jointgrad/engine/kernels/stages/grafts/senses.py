"""What networks see: the state, links, nodes of earlier networks, and points that touch. Forward and reverse side by side."""

from .....algebra.rotation import tangents
from .....algebra.spatial import add, composed, moved_about, moved_pose, sub
from .....algebra.vector import cross, dot, transposed_times
from .....compiler.elementary import detached, safe_norm
from .....compiler.kernel import accumulate, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.grafts import (
    SEE_CONTROL,
    SEE_DEPTH,
    SEE_LINK,
    SEE_NODE,
    SEE_NORMAL,
    SEE_PLACE,
    SEE_POSITION,
    SEE_RATE,
    SEE_SLIDING,
)

# the robot ------------------------------------------------------------------------------------------------------------------


@traced
def link_twist(pose, reference, frame, v):
    """Velocity of a link's origin, then its angular velocity, in the link's own axes."""
    link = composed(pose, frame)
    arm = sub(link[9:], detached(reference[9:]))
    R = link[:9]
    return (*transposed_times(R, add(v[3:], cross(v[:3], arm))), *transposed_times(R, v[:3]))


@traced
def moved_link_twist(pose, reference, frame, v, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    """A body moves about the reference point, which itself stays; a frame moves about its body's origin."""
    moved = moved_about(pose, reference, body_delta)
    return link_twist.fn(moved, reference, moved_pose(frame, frame_delta), v)


moved_link_twist_adjoint = adjoint(moved_link_twist, "body_delta frame_delta v", at_zero="body_delta frame_delta")


@traced
def same(x):
    return x


@sweep
def see(frame, s, node):
    """What sense s sees goes to the nodes from `node` on."""
    tree, state, work = frame.tree, frame.state, frame.work
    kind, i = tree.sense_kind[s], tree.sense_index[s]
    if kind == SEE_POSITION:
        work.node[node] = same(state.q[i])
    elif kind == SEE_RATE:
        work.node[node] = same(state.qd[i])
    elif kind == SEE_CONTROL:
        work.node[node] = same(state.u[i])
    elif kind == SEE_NODE:
        work.node[node] = same(work.node[i])
    elif kind == SEE_LINK:
        b = tree.link_body[i]
        twist = link_twist(
            work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[tree.link_frame[i]], work.v[b]
        )
        for k in range(6):
            work.node[node + k] = twist[k]


@sweep
def see_adjoint(frame, bar, s, node):
    tree, work = frame.tree, frame.work
    kind, i = tree.sense_kind[s], tree.sense_index[s]
    if kind == SEE_POSITION:
        accumulate(bar.state.q, i, bar.work.node[node])
    elif kind == SEE_RATE:
        accumulate(bar.state.qd, i, bar.work.node[node])
    elif kind == SEE_CONTROL:
        accumulate(bar.state.u, i, bar.work.node[node])
    elif kind == SEE_NODE:
        accumulate(bar.work.node, i, bar.work.node[node])
    elif kind == SEE_LINK:
        b, row = tree.link_body[i], tree.link_frame[i]
        twist_bar = (
            bar.work.node[node], bar.work.node[node + 1], bar.work.node[node + 2], bar.work.node[node + 3],
            bar.work.node[node + 4], bar.work.node[node + 5],
        )  # fmt: skip
        pose_bar, frame_bar, v_bar = moved_link_twist_adjoint(
            work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[row], work.v[b], twist_bar
        )
        accumulate(bar.work.pose, b, pose_bar)
        accumulate(bar.work.v, b, v_bar)
        accumulate(bar.assembly.frame_pose, row, frame_bar)


# a point that touches -------------------------------------------------------------------------------------------------------


@traced
def opposite(x):
    return -x


@traced
def sliding(point, normal, v_a, v_b, reference_a, reference_b):
    """Velocity of shape a's side against that of b: parting, then along both tangents, then the speed along the surface."""
    arm_a, arm_b = sub(point, detached(reference_a[9:])), sub(point, detached(reference_b[9:]))
    velocity = sub(add(v_a[3:], cross(v_a[:3], arm_a)), add(v_b[3:], cross(v_b[:3], arm_b)))
    along = tuple(dot(velocity, t) for t in tangents(normal))
    return dot(velocity, normal), *along, safe_norm((*along, 0.0))


sliding_adjoint = adjoint(sliding, "point normal v_a v_b")


@traced
def place_on_link(point, pose, frame):
    link = composed(pose, frame)
    return transposed_times(link[:9], sub(point, link[9:]))


@traced
def moved_place_on_link(point, pose, reference, frame, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    """As the links above move."""
    return place_on_link.fn(point, moved_about(pose, reference, body_delta), moved_pose(frame, frame_delta))


moved_place_on_link_adjoint = adjoint(
    moved_place_on_link, "point body_delta frame_delta", at_zero="body_delta frame_delta"
)


@sweep
def see_point(frame, i, s, node):
    """What sense s sees of point i; nothing where it sees the robot."""
    tree, work, touch = frame.tree, frame.work, frame.touch
    kind, p = tree.sense_kind[s], touch.pair[i]
    if kind == SEE_DEPTH:
        work.node[node] = opposite(touch.gap[i])
    elif kind == SEE_SLIDING:
        a, b = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
        velocity = sliding(
            touch.point[i], touch.normal[i], work.v[a], work.v[b], work.pose[tree.reference[a]], work.pose[tree.reference[b]]
        )  # fmt: skip
        for k in range(4):
            work.node[node + k] = velocity[k]
    elif kind == SEE_NORMAL:
        normal = touch.normal[i]
        for k in range(3):
            work.node[node + k] = normal[k]
    elif kind == SEE_PLACE:
        j = tree.shape_link[tree.pair_a[p]]
        place = place_on_link(
            touch.point[i], work.pose[tree.link_body[j]], frame.assembly.frame_pose[tree.link_frame[j]]
        )
        for k in range(3):
            work.node[node + k] = place[k]


@sweep
def see_point_adjoint(frame, bar, i, s, node):
    tree, work, touch = frame.tree, frame.work, frame.touch
    kind, p, node_bar = tree.sense_kind[s], touch.pair[i], bar.work.node
    if kind == SEE_DEPTH:
        accumulate(bar.touch.gap, i, opposite(node_bar[node]))
    elif kind == SEE_SLIDING:
        a, b = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
        point, normal, v_a, v_b = sliding_adjoint(
            touch.point[i], touch.normal[i], work.v[a], work.v[b], work.pose[tree.reference[a]],
            work.pose[tree.reference[b]], (node_bar[node], node_bar[node + 1], node_bar[node + 2], node_bar[node + 3]),
        )  # fmt: skip
        accumulate(bar.touch.point, i, point)
        accumulate(bar.touch.normal, i, normal)
        accumulate(bar.work.v, a, v_a)
        accumulate(bar.work.v, b, v_b)
    elif kind == SEE_NORMAL:
        accumulate(bar.touch.normal, i, (node_bar[node], node_bar[node + 1], node_bar[node + 2]))
    elif kind == SEE_PLACE:
        j = tree.shape_link[tree.pair_a[p]]
        b, row = tree.link_body[j], tree.link_frame[j]
        point, pose_bar, frame_bar = moved_place_on_link_adjoint(
            touch.point[i], work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[row],
            (node_bar[node], node_bar[node + 1], node_bar[node + 2]),
        )  # fmt: skip
        accumulate(bar.touch.point, i, point)
        accumulate(bar.work.pose, b, pose_bar)
        accumulate(bar.assembly.frame_pose, row, frame_bar)
