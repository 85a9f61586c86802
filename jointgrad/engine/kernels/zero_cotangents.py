"""Setting cotangents to zero before a reverse adds to them."""

from ...compiler.kernel import sweep
from .operators import zero, zero3, zero6


@sweep
def zero_work_bar(frame, bar):
    tree, work = frame.tree, frame.work
    for b in range(tree.n_bodies + 1):
        bar.work.pose[b] = zero6(work.v[b][0])
        bar.work.v[b] = zero6(work.v[b][0])
    bar.work.c[tree.n_bodies] = zero6(work.v[0][0])
    for d in range(tree.n_dofs):
        bar.work.S[d] = zero6(work.v[0][0])
        bar.work.armature[d] = zero(work.v[0][0])
    for t in range(tree.n_tendons):
        bar.work.length[t] = zero(work.v[0][0])
        bar.work.speed[t] = zero(work.v[0][0])
        bar.work.pull[t] = zero(work.v[0][0])


@sweep
def zero_touch_bar(frame, bar):
    """Cotangents of shapes and of the points that touch."""
    tree, touch, params = frame.tree, frame.touch, frame.params
    for i in range(tree.n_shapes):
        bar.touch.shape[i] = zero6(params.world_dt[0])
    for i in range(touch.n):
        bar.touch.point[i] = bar.touch.normal[i] = bar.touch.force[i] = zero3(params.world_dt[0])
        bar.touch.gap[i] = zero(params.world_dt[0])
    if tree.n_point_nets != 0:
        for i in range(touch.n):
            bar.touch.friction[i] = bar.touch.restitution[i] = zero(params.world_dt[0])
            bar.touch.stiffness[i] = bar.touch.damping[i] = zero(params.world_dt[0])


@sweep
def zero_state_bar(frame, bar):
    tree, params = frame.tree, frame.params
    zero_motion_bar(frame, bar)
    for a in range(tree.n_actuators):
        bar.state.u[a] = zero(params.world_dt[0])
    if frame.call.force != 0:
        for k in range(6 * tree.n_links):
            bar.state.force[k] = zero(params.world_dt[0])


@sweep
def zero_motion_bar(frame, bar):
    tree, params = frame.tree, frame.params
    for i in range(tree.n_q):
        bar.state.q[i] = zero(params.world_dt[0])
    for d in range(tree.n_dofs):
        bar.state.qd[d] = zero(params.world_dt[0])
    for i in range(tree.n_more):
        bar.state.more[i] = zero(params.world_dt[0])
