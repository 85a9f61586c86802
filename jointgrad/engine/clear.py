"""Setting cotangents to zero before a reverse adds to them."""

from ..compiler.kernel import sweep
from .operators import zero, zero3, zero6


@sweep
def clear_work(tree, work, work_bar):
    for b in range(tree.n_bodies + 1):
        work_bar.pose[b] = zero6(work.v[b][0])
        work_bar.v[b] = zero6(work.v[b][0])
    work_bar.c[tree.n_bodies] = zero6(work.v[0][0])
    for d in range(tree.n_dofs):
        work_bar.S[d] = zero6(work.v[0][0])
        work_bar.armature[d] = zero(work.v[0][0])
    for t in range(tree.n_tendons):
        work_bar.length[t] = zero(work.v[0][0])
        work_bar.speed[t] = zero(work.v[0][0])
        work_bar.pull[t] = zero(work.v[0][0])


@sweep
def clear_touch(tree, touch, touch_bar, params):
    """Cotangents of shapes and of the points that touch."""
    for i in range(tree.n_shapes):
        touch_bar.shape[i] = zero6(params.world_dt[0])
    for i in range(touch.n):
        touch_bar.point[i] = touch_bar.normal[i] = touch_bar.force[i] = zero3(params.world_dt[0])
        touch_bar.gap[i] = zero(params.world_dt[0])
    if tree.n_point_nets != 0:
        for i in range(touch.n):
            touch_bar.friction[i] = touch_bar.restitution[i] = zero(params.world_dt[0])
            touch_bar.stiffness[i] = touch_bar.damping[i] = zero(params.world_dt[0])


@sweep
def clear_state(tree, state_bar, params, call):
    clear_motion(tree, state_bar, params)
    for a in range(tree.n_actuators):
        state_bar.u[a] = zero(params.world_dt[0])
    if call.force != 0:
        for k in range(6 * tree.n_links):
            state_bar.force[k] = zero(params.world_dt[0])


@sweep
def clear_motion(tree, state_bar, params):
    for i in range(tree.n_q):
        state_bar.q[i] = zero(params.world_dt[0])
    for d in range(tree.n_dofs):
        state_bar.qd[d] = zero(params.world_dt[0])
