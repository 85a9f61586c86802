"""Setting cotangents to zero before a reverse adds to them."""

from ..compiler.kernel import sweep
from ..compiler.trace import traced


@traced
def zero(anything):
    return 0.0 * anything


@traced
def six_zeros(anything):
    return (0.0 * anything,) * 6


@traced
def three_zeros(anything):
    return (0.0 * anything,) * 3


@sweep
def clear_work(tree, work, work_bar):
    for b in range(tree.n_bodies + 1):
        work_bar.pose[b] = six_zeros(work.v[b][0])
        work_bar.v[b] = six_zeros(work.v[b][0])
    work_bar.c[tree.n_bodies] = six_zeros(work.v[0][0])
    for d in range(tree.n_dofs):
        work_bar.S[d] = six_zeros(work.v[0][0])
        work_bar.armature[d] = zero(work.v[0][0])
    for t in range(tree.n_tendons):
        work_bar.length[t] = zero(work.v[0][0])
        work_bar.speed[t] = zero(work.v[0][0])
        work_bar.pull[t] = zero(work.v[0][0])


@sweep
def clear_touch(tree, touch, touch_bar, params):
    """Cotangents of shapes and of the points that touch."""
    for i in range(tree.n_shapes):
        touch_bar.shape[i] = six_zeros(params.world_dt[0])
    for i in range(touch.n):
        touch_bar.point[i] = touch_bar.normal[i] = touch_bar.force[i] = three_zeros(params.world_dt[0])
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
