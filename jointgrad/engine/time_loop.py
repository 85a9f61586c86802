"""Many steps of many environments, and back: what one worker does with its share of a batch.

A pack of environments goes through the whole motion before the next pack starts, so that its workspace stays in the
processor's cache. The user's arrays, axes (time, batch, value), are read and written in place.
"""

from ..compiler.kernel import accumulate, add_lanes, all_finite, gather, kernel, lanes_of, mark, scatter, sweep
from ..compiler.elementary import select
from ..compiler.trace import traced
from .stages.assembly import assembly_stage, assembly_stage_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs, outputs_adjoint
from .step import clear, clear_motion, dynamics, step, step_adjoint, zero

# what a program does: keep the present state in a slot, go back to one, go on some steps, reverse one step
STORE, LOAD, ADVANCE, REVERSE = range(4)
NUMBER = 8  # bytes


@sweep
def fill(field, n, base, base_dot, env, count):
    """n numbers per environment, from one row of the user's array."""
    offset = env * n * NUMBER
    dot = base_dot
    if base_dot != 0:
        dot += offset
    gather(field, 0, n, base + offset, dot, n * NUMBER, count)


@sweep
def empty(field, n, base, base_dot, env, count):
    """n numbers per environment, into one row of the user's array."""
    offset = env * n * NUMBER
    scatter(field, 0, n, base + offset, base_dot + offset, n * NUMBER, count)


@sweep
def at_row(base, row, batch, n):
    """Address of row `row` of an array (time, batch, n); 0 stays 0."""
    if base == 0:
        return 0
    return base + row * batch * n * NUMBER


@sweep
def assemble(tree, params, gauge, assembly, call, env, count):
    """Parameters of these environments, and what the step needs of them."""
    cell = 0
    for f in range(call.n_fields):
        stride, dot = call.param_stride[f], call.param_dot[f]
        if dot != 0:
            dot += env * stride
        gather(params.all, cell, call.param_size[f], call.param[f] + env * stride, dot, stride, count)
        cell += call.param_size[f]
    per_env = 0 if call.gauge_is_shared != 0 else tree.n_frames * NUMBER
    gather(gauge.rotation, 0, 9 * tree.n_frames, call.gauge_rotation + 9 * env * per_env, 0, 9 * per_env, count)
    gather(gauge.axis, 0, 3 * tree.n_frames, call.gauge_axis + 3 * env * per_env, 0, 3 * per_env, count)
    assembly_stage(tree, params, gauge, assembly)


@sweep
def controls(tree, state, call, k, env, count):
    """u and outside forces of step k."""
    if call.u != 0:
        nu = tree.n_actuators
        fill(state.u, nu, at_row(call.u, k, call.batch, nu), at_row(call.u_dot, k, call.batch, nu), env, count)
    if call.force != 0:
        dot = call.force_dot
        if dot != 0:
            dot += k * call.force_step
        fill(state.force, 6 * tree.n_links, call.force + k * call.force_step, dot, env, count)


@traced
def and_finite(acc, x):
    return acc + (x - x)


@traced
def kept(acc, new, old):
    return select(1.0 > acc, new, old)


@sweep
def finiteness(tree, params, work):
    """Zero in the lanes whose next state is finite, NaN in the others."""
    of_q = zero(params.world_dt[0])
    of_qd = of_q
    for i in range(tree.n_q):
        of_q = and_finite(of_q, work.q_next[i])
    for d in range(tree.n_dofs):
        of_qd = and_finite(of_qd, work.qd_next[d])
    return and_finite(of_q, of_qd)


@sweep
def advance(tree, params, assembly, state, work, runge, call, k, env, count):
    """One step; an environment that leaves the finite numbers stays where it was, and the others do not notice."""
    controls(tree, state, call, k, env, count)
    step(tree, params, assembly, state, work, runge, call)
    acc = finiteness(tree, params, work)
    if all_finite(acc):
        for i in range(tree.n_q):
            state.q[i] = work.q_next[i]
        for d in range(tree.n_dofs):
            state.qd[d] = work.qd_next[d]
    else:
        if call.status != 0:
            mark(acc, call.status + env * NUMBER, k, count)
        for i in range(tree.n_q):
            state.q[i] = kept(acc, work.q_next[i], state.q[i])
        for d in range(tree.n_dofs):
            state.qd[d] = kept(acc, work.qd_next[d], state.qd[d])


@sweep
def keep_state(tree, state, call, k, env, count):
    row = k // call.interval
    nq, nv = tree.n_q, tree.n_dofs
    empty(state.q, nq, at_row(call.q, row, call.batch, nq), at_row(call.q_dot, row, call.batch, nq), env, count)
    empty(state.qd, nv, at_row(call.qd, row, call.batch, nv), at_row(call.qd_dot, row, call.batch, nv), env, count)


@sweep
def write_output(field, width, number, tree, call, k, env, count):
    n = width * tree.n_links
    if call.output[number] != 0:
        dot = at_row(call.output_dot[number], k, call.batch, n)
        empty(field, n, at_row(call.output[number], k, call.batch, n), dot, env, count)


@sweep
def write_outputs(tree, assembly, work, output, call, k, env, count):
    outputs(tree, assembly, work, output)
    write_output(output.position, 3, 0, tree, call, k, env, count)
    write_output(output.rotation, 9, 1, tree, call, k, env, count)
    write_output(output.velocity, 6, 2, tree, call, k, env, count)


@sweep
def pack_count(state, call, env):
    lanes = lanes_of(state.q)
    return lanes if call.last - env >= lanes else call.last - env


@kernel
def rollout(tree, params, gauge, assembly, state, work, runge, output, call):
    if call.assemble == 1:
        assemble(tree, params, gauge, assembly, call, 0, 1)
    env = call.first
    while env < call.last:
        count = pack_count(state, call, env)
        if call.assemble == 2:
            assemble(tree, params, gauge, assembly, call, env, count)
        fill(state.q, tree.n_q, call.q0, call.q0_dot, env, count)
        fill(state.qd, tree.n_dofs, call.qd0, call.qd0_dot, env, count)
        for k in range(call.steps):
            if call.q != 0 and k % call.interval == 0:
                keep_state(tree, state, call, k, env, count)
            if call.wants_outputs != 0:
                kinematics(tree, params, assembly, state, work)
                write_outputs(tree, assembly, work, output, call, k, env, count)
            advance(tree, params, assembly, state, work, runge, call, k, env, count)
        if call.wants_outputs != 0:
            kinematics(tree, params, assembly, state, work)
            write_outputs(tree, assembly, work, output, call, call.steps, env, count)
        empty(state.q, tree.n_q, call.q_last, call.q_last_dot, env, count)
        empty(state.qd, tree.n_dofs, call.qd_last, call.qd_last_dot, env, count)
        env += lanes_of(state.q)


# the reverse ------------------------------------------------------------------------------------------------------------


@sweep
def read_output_bar(field, width, number, tree, call, k, env, count):
    n = width * tree.n_links
    if call.output_bar[number] != 0:
        fill(field, n, at_row(call.output_bar[number], k, call.batch, n), 0, env, count)


@sweep
def read_output_bars(tree, output_bar, call, k, env, count):
    read_output_bar(output_bar.position, 3, 0, tree, call, k, env, count)
    read_output_bar(output_bar.rotation, 9, 1, tree, call, k, env, count)
    read_output_bar(output_bar.velocity, 6, 2, tree, call, k, env, count)


@sweep
def add_state_bars(tree, state_bar, work_bar, call, k, env, count):
    """The cotangent of state k: what came back through the step, and what the loss itself says of it."""
    nq, nv = tree.n_q, tree.n_dofs
    has_own = call.each != 0 or k == call.steps
    row = k if call.each != 0 else 0
    for field, total, base, n in (
        (work_bar.q_next, state_bar.q, call.q_bar, nq),
        (work_bar.qd_next, state_bar.qd, call.qd_bar, nv),
    ):
        if has_own and base != 0:
            fill(field, n, at_row(base, row, call.batch, n), 0, env, count)
        else:
            for i in range(n):
                field[i] = zero(total[i])
        for i in range(n):
            accumulate(field, i, total[i])


@sweep
def reverse_last_outputs(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, output_bar, call, env, count):
    """Outputs of the last state, which no step starts from."""
    fill(state.q, tree.n_q, call.q_last, 0, env, count)
    fill(state.qd, tree.n_dofs, call.qd_last, 0, env, count)
    kinematics(tree, params, assembly, state, work)
    clear(tree, work, work_bar)
    for b in range(tree.n_bodies):
        work_bar.c[b] = work_bar.v[b]
    for d in range(tree.n_dofs):
        work_bar.S[d] = work_bar.v[0]
    read_output_bars(tree, output_bar, call, call.steps, env, count)
    outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
    kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)


@sweep
def reverse_step(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge, runge_bar,
    spare, call, k, env, count
):  # fmt: skip
    """Recompute step k from its state, then reverse it. In a lane that left the finite numbers the step changed nothing."""
    controls(tree, state, call, k, env, count)
    step(tree, params, assembly, state, work, runge, call)
    if call.wants_outputs != 0:
        read_output_bars(tree, output_bar, call, k, env, count)
    acc = finiteness(tree, params, work)
    is_sound = all_finite(acc)
    if not is_sound:
        set_aside(tree, params_bar, assembly_bar, work_bar, spare, call)
    step_adjoint(
        tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge, runge_bar, call
    )
    if not is_sound:
        restore(tree, params_bar, assembly_bar, state_bar, spare, call, acc)
    if call.u_bar != 0:
        nu = tree.n_actuators
        empty(state_bar.u, nu, at_row(call.u_bar, k, call.batch, nu), 0, env, count)
    if call.force_bar != 0:
        n = 6 * tree.n_links
        empty(state_bar.force, n, at_row(call.force_bar, k, call.batch, n), 0, env, count)
    add_state_bars(tree, state_bar, work_bar, call, k, env, count)


@sweep
def set_aside(tree, params_bar, assembly_bar, work_bar, spare, call):
    for i in range(call.n_params):
        spare.params[i] = params_bar.all[i]
    for i in range(call.n_assembly):
        spare.assembly[i] = assembly_bar.all[i]
    for i in range(tree.n_q):
        spare.q[i] = work_bar.q_next[i]
    for d in range(tree.n_dofs):
        spare.qd[d] = work_bar.qd_next[d]


@sweep
def restore(tree, params_bar, assembly_bar, state_bar, spare, call, acc):
    for i in range(call.n_params):
        params_bar.all[i] = kept(acc, params_bar.all[i], spare.params[i])
    for i in range(call.n_assembly):
        assembly_bar.all[i] = kept(acc, assembly_bar.all[i], spare.assembly[i])
    for i in range(tree.n_q):
        state_bar.q[i] = kept(acc, state_bar.q[i], spare.q[i])
    for d in range(tree.n_dofs):
        state_bar.qd[d] = kept(acc, state_bar.qd[d], spare.qd[d])
    for a in range(tree.n_actuators):
        state_bar.u[a] = kept(acc, state_bar.u[a], 0.0)
    if call.force != 0:
        for k in range(6 * tree.n_links):
            state_bar.force[k] = kept(acc, state_bar.force[k], 0.0)


@sweep
def reverse_interval(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge, runge_bar,
    slots, spare, call, interval, begin, length, env, count
):  # fmt: skip
    """Run the program that reverses one interval, from the state kept at its start."""
    nq, nv, start = tree.n_q, tree.n_dofs, interval * call.interval
    fill(state.q, nq, at_row(call.q, interval, call.batch, nq), 0, env, count)
    fill(state.qd, nv, at_row(call.qd, interval, call.batch, nv), 0, env, count)
    k = start
    for line in range(begin, begin + length):
        action, argument, at = call.program[3 * line], call.program[3 * line + 1], call.program[3 * line + 2]
        if action == REVERSE:
            reverse_step(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge,
                runge_bar, spare, call, k, env, count,
            )  # fmt: skip
        elif action == ADVANCE:
            for _ in range(argument):
                advance(tree, params, assembly, state, work, runge, call, k, env, count)
                k += 1
        elif action == STORE:
            for i in range(nq):
                slots.q[argument * nq + i] = state.q[i]
            for d in range(nv):
                slots.qd[argument * nv + d] = state.qd[d]
        else:
            k = start + at
            for i in range(nq):
                state.q[i] = slots.q[argument * nq + i]
            for d in range(nv):
                state.qd[d] = slots.qd[argument * nv + d]


@sweep
def hand_over_params(params_bar, call, env, count):
    """Shared parameters: the sum over the environments of a chunk, in their order. Others: to each its own."""
    cell = 0
    for f in range(call.n_fields):
        stride, size = call.param_stride[f], call.param_size[f]
        if stride == 0:
            row = call.params_sum + (env // call.chunk) * call.n_params * NUMBER
            for k in range(cell, cell + size):
                add_lanes(params_bar.all, k, row + k * NUMBER, count)
        else:
            scatter(params_bar.all, cell, size, call.param_bar[f] + env * stride, 0, stride, count)
        cell += size


@kernel
def rollout_adjoint(
    tree, params, params_bar, gauge, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge,
    runge_bar, slots, spare, call
):  # fmt: skip
    if call.assemble == 1:
        assemble(tree, params, gauge, assembly, call, 0, 1)
    env = call.first
    while env < call.last:
        count = pack_count(state, call, env)
        if call.assemble == 2:
            assemble(tree, params, gauge, assembly, call, env, count)
        for i in range(call.n_params):
            params_bar.all[i] = zero(params.world_dt[0])
        for i in range(call.n_assembly):
            assembly_bar.all[i] = zero(params.world_dt[0])
        clear_motion(tree, state_bar, params)
        if call.wants_outputs != 0:
            reverse_last_outputs(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, output_bar, call, env, count
            )
        add_state_bars(tree, state_bar, work_bar, call, call.steps, env, count)
        n_intervals = (call.steps + call.interval - 1) // call.interval
        for interval in range(n_intervals - 1, -1, -1):
            begin, length = 0, call.program_length
            if interval == n_intervals - 1:
                begin, length = call.program_length, call.tail_length
            reverse_interval(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge,
                runge_bar, slots, spare, call, interval, begin, length, env, count,
            )  # fmt: skip
        empty(work_bar.q_next, tree.n_q, call.q0_bar, 0, env, count)
        empty(work_bar.qd_next, tree.n_dofs, call.qd0_bar, 0, env, count)
        if call.wants_params != 0:
            assembly_stage_adjoint(tree, params, params_bar, gauge, assembly, assembly_bar)
            hand_over_params(params_bar, call, env, count)
        env += lanes_of(state.q)


@kernel
def evaluation(tree, params, gauge, assembly, state, work, output, call):
    """Everything about one pack of states, left in the tables for whoever called."""
    count = pack_count(state, call, call.first)
    assemble(tree, params, gauge, assembly, call, call.first, count)
    fill(state.q, tree.n_q, call.q0, 0, call.first, count)
    fill(state.qd, tree.n_dofs, call.qd0, 0, call.first, count)
    controls(tree, state, call, 0, call.first, count)
    dynamics(tree, params, assembly, state, work, call)
    outputs(tree, assembly, work, output)


KERNELS = (rollout, rollout_adjoint, evaluation)
