"""Many steps of many environments, and back: what one worker does with its share of a batch.

A pack of environments goes through the whole motion before the next pack starts, so that its workspace stays in the
processor's cache. The user's arrays, axes (time, batch, value), are read and written in place. A call that is stopped
(`at.is_stopped`, set by who waits for it) ends before its next step; what it leaves in its tables is of no use.
"""

from ..compiler.elementary import select
from ..compiler.kernel import accumulate, add_lanes, all_finite, gather, kernel, lanes_of, mark, scatter, sweep
from ..compiler.trace import traced
from .clear import clear_motion, clear_work
from .dynamics import dynamics
from .operators import zero
from .stages.assembly import assembly_stage, assembly_stage_adjoint
from .stages.contact import contact
from .stages.contact.margins import margins, nearer, stretch_margins, together, unstretch_margins
from .stages.contact.settling import forget
from .stages.detection import detection
from .stages.grafts import grafted_rates, ungraft
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs, outputs_adjoint
from .step import step, step_adjoint
from .switches import switches
from .workspace import RECORD, RK4

# what a program does: keep the present state in a slot, go back to one, go on some steps, reverse one step
STORE, LOAD, ADVANCE, REVERSE = range(4)
# when parameters are assembled: they are already, once for all environments, or anew for every pack
DONE, ONCE, EACH_PACK = range(3)
NUMBER = 8  # bytes
N_RECORD = len(RECORD)


@sweep
def fill(field, n, base, base_dot, at):
    """n numbers per environment, from one row of the user's array."""
    offset = at.env * n * NUMBER
    dot = base_dot
    if base_dot != 0:
        dot += offset
    gather(field, 0, n, base + offset, dot, n * NUMBER, at.count)


@sweep
def empty(field, n, base, base_dot, at):
    """n numbers per environment, into one row of the user's array."""
    offset = at.env * n * NUMBER
    scatter(field, 0, n, base + offset, base_dot + offset, n * NUMBER, at.count)


@sweep
def at_row(base, row, batch, n):
    """Address of row `row` of an array (time, batch, n); 0 stays 0."""
    if base == 0:
        return 0
    return base + row * batch * n * NUMBER


@kernel
def assemble(tree, params, gauge, assembly, call, at):
    """Parameters of these environments, and what the step needs of them."""
    cell = 0
    for f in range(call.n_fields):
        stride, dot = call.param_stride[f], call.param_dot[f]
        if dot != 0:
            dot += at.env * stride
        gather(params.all, cell, call.param_size[f], call.param[f] + at.env * stride, dot, stride, at.count)
        cell += call.param_size[f]
    per_env = 0 if call.gauge_is_shared != 0 else tree.n_frames * NUMBER
    gather(gauge.rotation, 0, 9 * tree.n_frames, call.gauge_rotation + 9 * at.env * per_env, 0, 9 * per_env, at.count)
    gather(gauge.axis, 0, 3 * tree.n_frames, call.gauge_axis + 3 * at.env * per_env, 0, 3 * per_env, at.count)
    assembly_stage(tree, params, gauge, assembly)


@sweep
def controls(tree, state, call, at):
    """u and outside forces of the present step."""
    k, nu, batch = at.step, tree.n_actuators, call.batch
    if call.u != 0:
        fill(state.u, nu, at_row(call.u, k, batch, nu), at_row(call.u_dot, k, batch, nu), at)
    if call.force != 0:
        dot = call.force_dot
        if dot != 0:
            dot += k * call.force_step
        fill(state.force, 6 * tree.n_links, call.force + k * call.force_step, dot, at)


@traced
def and_finite(acc, x):
    return acc + (x - x)


@traced
def kept(acc, new, old):
    return select(1.0 > acc, new, old)


@traced
def kept_if_finite(lost, acc, x):
    """x, but nothing in a lane that is lost and where acc is not finite either."""
    return select(1.0 > select(1.0 > lost, 0.0, acc), x, 0.0)


@traced
def own_if_finite(lost, x):
    return kept_if_finite.fn(lost, x - x, x)


@traced
def none_if_lost(acc, values):
    return tuple(select(1.0 > acc, x, 0.0) for x in values)


@traced
def none_if_sound(acc, values):
    return tuple(select(1.0 > acc, 0.0, x) for x in values)


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


@kernel
def advance(tree, params, assembly, state, work, touch, block, runge, output, call, at):
    """One step; an environment that leaves the finite numbers stays where it was, and the others do not notice."""
    controls(tree, state, call, at)
    step(tree, params, assembly, state, work, touch, block, runge, output, call)
    acc = finiteness(tree, params, work)
    if all_finite(acc):
        for i in range(tree.n_q):
            state.q[i] = work.q_next[i]
        for d in range(tree.n_dofs):
            state.qd[d] = work.qd_next[d]
    else:
        if call.status != 0:
            mark(acc, call.status + at.env * NUMBER, at.step, at.count)
        for i in range(tree.n_q):
            state.q[i] = kept(acc, work.q_next[i], state.q[i])
        for d in range(tree.n_dofs):
            state.qd[d] = kept(acc, work.qd_next[d], state.qd[d])
        if call.wants_loads != 0:
            # what did not happen exerted no force
            for j in range(tree.n_links):
                output.force[j] = none_if_lost(acc, output.force[j])
                output.torque[j] = none_if_lost(acc, output.torque[j])


@sweep
def write_output(field, width, number, tree, call, at):
    n = width * tree.n_links
    if call.output[number] != 0:
        dot = at_row(call.output_dot[number], at.step, call.batch, n)
        empty(field, n, at_row(call.output[number], at.step, call.batch, n), dot, at)


@kernel
def write_outputs(tree, params, assembly, state, work, output, call, at):
    """Named outputs of the present state."""
    kinematics(tree, params, assembly, state, work)
    outputs(tree, assembly, work, output)
    write_output(output.position, 3, 0, tree, call, at)
    write_output(output.rotation, 9, 1, tree, call, at)
    write_output(output.velocity, 6, 2, tree, call, at)


@sweep
def write_loads(tree, output, call, at):
    """What contact did to links in the step that led to the present state."""
    write_output(output.force, 3, 3, tree, call, at)
    write_output(output.torque, 3, 4, tree, call, at)


@sweep
def keep_state(tree, state, call, at):
    row, batch, nq, nv = at.step // call.interval, call.batch, tree.n_q, tree.n_dofs
    empty(state.q, nq, at_row(call.q, row, batch, nq), at_row(call.q_dot, row, batch, nq), at)
    empty(state.qd, nv, at_row(call.qd, row, batch, nv), at_row(call.qd_dot, row, batch, nv), at)


@sweep
def take_pack(state, call, at, env):
    """Turn to the environments from `env` on, as many as a pack holds."""
    lanes = lanes_of(state.q)
    at.env = env
    at.count = lanes if call.last - env >= lanes else call.last - env


@kernel
def rollout(tree, params, gauge, assembly, state, work, touch, block, runge, output, call, at):
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(state, call, at, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(tree, params, gauge, assembly, call, at)
        fill(state.q, tree.n_q, call.q0, call.q0_dot, at)
        fill(state.qd, tree.n_dofs, call.qd0, call.qd0_dot, at)
        if tree.has_impulses != 0:
            forget(params, block)
        for k in range(call.steps):
            if at.is_stopped != 0:
                return
            at.step = k
            if call.q != 0 and k % call.interval == 0:
                keep_state(tree, state, call, at)
            if call.wants_outputs != 0:
                write_outputs(tree, params, assembly, state, work, output, call, at)
            advance(tree, params, assembly, state, work, touch, block, runge, output, call, at)
            if call.wants_loads != 0:
                at.step = k + 1
                write_loads(tree, output, call, at)
        at.step = call.steps
        if call.wants_outputs != 0:
            write_outputs(tree, params, assembly, state, work, output, call, at)
        empty(state.q, tree.n_q, call.q_last, call.q_last_dot, at)
        empty(state.qd, tree.n_dofs, call.qd_last, call.qd_last_dot, at)
        if call.settling != 0:
            empty(block.unsettled, 3, call.settling, 0, at)


# the reverse ------------------------------------------------------------------------------------------------------------


@sweep
def read_output_bar(field, width, number, tree, call, at):
    n = width * tree.n_links
    if call.output_bar[number] != 0:
        fill(field, n, at_row(call.output_bar[number], at.step, call.batch, n), 0, at)


@sweep
def read_output_bars(tree, output_bar, call, at):
    read_output_bar(output_bar.position, 3, 0, tree, call, at)
    read_output_bar(output_bar.rotation, 9, 1, tree, call, at)
    read_output_bar(output_bar.velocity, 6, 2, tree, call, at)


@sweep
def read_load_bars(tree, output_bar, call, at):
    """Of the state that the present step leads to."""
    at.step += 1
    read_output_bar(output_bar.force, 3, 3, tree, call, at)
    read_output_bar(output_bar.torque, 3, 4, tree, call, at)
    at.step -= 1


@sweep
def add_own(field, total, base, n, call, at):
    """field = total + the loss's own cotangent of the present state, where it has one."""
    if base != 0 and (call.each != 0 or at.step == call.steps):
        row = at.step if call.each != 0 else 0
        fill(field, n, at_row(base, row, call.batch, n), 0, at)
        for i in range(n):
            accumulate(field, i, total[i])
    else:
        for i in range(n):
            field[i] = total[i]


@sweep
def add_state_bars(tree, state_bar, work_bar, call, at):
    """What came back through the step, and what the loss itself says, is the cotangent of the step before's next state."""
    add_own(work_bar.q_next, state_bar.q, call.q_bar, tree.n_q, call, at)
    add_own(work_bar.qd_next, state_bar.qd, call.qd_bar, tree.n_dofs, call, at)


@kernel
def reverse_outputs(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, output_bar, call
):  # fmt: skip
    """Outputs of a state apart from any step: adds to the cotangents of the state."""
    kinematics(tree, params, assembly, state, work)
    clear_work(tree, work, work_bar)
    nothing = work_bar.v[tree.n_bodies]
    for b in range(tree.n_bodies):
        work_bar.c[b] = nothing
    for d in range(tree.n_dofs):
        work_bar.S[d] = nothing
    outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
    kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)


@sweep
def only_frozen(tree, output_bar, acc):
    """Output cotangents of the lanes that stayed where they were; the others have had theirs."""
    for j in range(tree.n_links):
        output_bar.position[j] = none_if_sound(acc, output_bar.position[j])
        output_bar.rotation[j] = none_if_sound(acc, output_bar.rotation[j])
        output_bar.velocity[j] = none_if_sound(acc, output_bar.velocity[j])


@kernel
def reverse_step(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block, block_bar,
    multiplier, output, output_bar, runge, runge_bar, spare, call, at
):  # fmt: skip
    """Recompute a step from its state, then reverse it. In a lane that diverged the step changed nothing, and
    the lane is lost: see `end_lost` for the steps before."""
    controls(tree, state, call, at)
    step(tree, params, assembly, state, work, touch, block, runge, output, call)
    if call.wants_outputs != 0:
        read_output_bars(tree, output_bar, call, at)
    if call.wants_loads != 0:
        read_load_bars(tree, output_bar, call, at)
    acc = finiteness(tree, params, work)
    is_sound = all_finite(acc)
    if not is_sound:
        set_aside(tree, params_bar, assembly_bar, work_bar, spare, call)
        spare.lost[0] = and_finite(spare.lost[0], acc)
    step_adjoint(
        tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block, block_bar,
        multiplier, output_bar, runge, runge_bar, call,
    )  # fmt: skip
    if not is_sound:
        restore(tree, params_bar, assembly_bar, state_bar, spare, call, acc)
        if call.wants_outputs != 0:
            only_frozen(tree, output_bar, acc)
            reverse_outputs(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, output_bar, call
            )
    if not all_finite(spare.lost[0]):
        end_lost(tree, state_bar, spare, call)
    if call.u_bar != 0:
        nu = tree.n_actuators
        empty(state_bar.u, nu, at_row(call.u_bar, at.step, call.batch, nu), 0, at)
    if call.force_bar != 0:
        n = 6 * tree.n_links
        empty(state_bar.force, n, at_row(call.force_bar, at.step, call.batch, n), 0, at)
    add_state_bars(tree, state_bar, work_bar, call, at)


@sweep
def end_lost(tree, state_bar, spare, call):
    """On its way to the step that diverged a lane may have gone through steps whose derivatives are not finite: what it hands
    back ends there. (A cotangent of zero times infinity ends there, too, and so is the zero that it should be.)"""
    lost = spare.lost[0]
    acc = zero(lost)
    for i in range(tree.n_q):
        acc = and_finite(acc, state_bar.q[i])
    for d in range(tree.n_dofs):
        acc = and_finite(acc, state_bar.qd[d])
    for i in range(tree.n_q):
        state_bar.q[i] = kept_if_finite(lost, acc, state_bar.q[i])
    for d in range(tree.n_dofs):
        state_bar.qd[d] = kept_if_finite(lost, acc, state_bar.qd[d])
    for a in range(tree.n_actuators):
        state_bar.u[a] = own_if_finite(lost, state_bar.u[a])
    if call.force != 0:
        for k in range(6 * tree.n_links):
            state_bar.force[k] = own_if_finite(lost, state_bar.force[k])


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
def store(tree, state, slots, slot):
    for i in range(tree.n_q):
        slots.q[slot * tree.n_q + i] = state.q[i]
    for d in range(tree.n_dofs):
        slots.qd[slot * tree.n_dofs + d] = state.qd[d]


@sweep
def load(tree, state, slots, slot):
    for i in range(tree.n_q):
        state.q[i] = slots.q[slot * tree.n_q + i]
    for d in range(tree.n_dofs):
        state.qd[d] = slots.qd[slot * tree.n_dofs + d]


@sweep
def reverse_interval(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block, block_bar,
    multiplier, output, output_bar, runge, runge_bar, slots, spare, call, at, interval
):  # fmt: skip
    """Run the program that reverses one interval, from the state kept at its start."""
    nq, nv, start = tree.n_q, tree.n_dofs, interval * call.interval
    fill(state.q, nq, at_row(call.q, interval, call.batch, nq), 0, at)
    fill(state.qd, nv, at_row(call.qd, interval, call.batch, nv), 0, at)
    at.step = start
    is_last = start + call.interval >= call.steps
    line = call.program_length if is_last else 0
    end = line + (call.tail_length if is_last else call.program_length)
    while line < end:
        if at.is_stopped != 0:
            return
        action, argument, place = call.program[3 * line], call.program[3 * line + 1], call.program[3 * line + 2]
        if action == REVERSE:
            reverse_step(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block,
                block_bar, multiplier, output, output_bar, runge, runge_bar, spare, call, at,
            )  # fmt: skip
        elif action == ADVANCE:
            for _ in range(argument):
                if at.is_stopped != 0:
                    return
                advance(tree, params, assembly, state, work, touch, block, runge, output, call, at)
                at.step += 1
        elif action == STORE:
            store(tree, state, slots, argument)
        else:
            load(tree, state, slots, argument)
            at.step = start + place
        line += 1


@sweep
def leave_out_lost(params_bar, spare, call):
    """A lost lane has no part in what environments share, and of its own keeps what is finite."""
    cell, lost = 0, spare.lost[0]
    for f in range(call.n_fields):
        for k in range(cell, cell + call.param_size[f]):
            if call.param_stride[f] == 0:
                params_bar.all[k] = kept(lost, params_bar.all[k], 0.0)
            else:
                params_bar.all[k] = own_if_finite(lost, params_bar.all[k])
        cell += call.param_size[f]


@sweep
def hand_over_params(params_bar, call, at):
    """Shared parameters: the sum over the environments of a chunk, in their order. Others: to each its own."""
    cell = 0
    for f in range(call.n_fields):
        stride, size = call.param_stride[f], call.param_size[f]
        if stride == 0:
            row = call.params_sum + (at.env // call.chunk) * call.n_params * NUMBER
            for k in range(cell, cell + size):
                add_lanes(params_bar.all, k, row + k * NUMBER, at.count)
        else:
            scatter(params_bar.all, cell, size, call.param_bar[f] + at.env * stride, 0, stride, at.count)
        cell += size


@kernel
def rollout_adjoint(
    tree, params, params_bar, gauge, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block, block_bar,
    multiplier, output, output_bar, runge, runge_bar, slots, spare, call, at
):  # fmt: skip
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(state, call, at, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(tree, params, gauge, assembly, call, at)
        for i in range(call.n_params):
            params_bar.all[i] = zero(params.world_dt[0])
        for i in range(call.n_assembly):
            assembly_bar.all[i] = zero(params.world_dt[0])
        clear_motion(tree, state_bar, params)
        spare.lost[0] = zero(params.world_dt[0])
        at.step = call.steps
        if call.wants_outputs != 0:
            fill(state.q, tree.n_q, call.q_last, 0, at)
            fill(state.qd, tree.n_dofs, call.qd_last, 0, at)
            read_output_bars(tree, output_bar, call, at)
            reverse_outputs(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, output_bar, call
            )
        add_state_bars(tree, state_bar, work_bar, call, at)
        for interval in range((call.steps - 1) // call.interval, -1, -1):
            reverse_interval(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block,
                block_bar, multiplier, output, output_bar, runge, runge_bar, slots, spare, call, at, interval,
            )  # fmt: skip
            if at.is_stopped != 0:
                return
        empty(work_bar.q_next, tree.n_q, call.q0_bar, 0, at)
        empty(work_bar.qd_next, tree.n_dofs, call.qd0_bar, 0, at)
        if call.wants_params != 0:
            assembly_stage_adjoint(tree, params, params_bar, gauge, assembly, assembly_bar)
            if not all_finite(spare.lost[0]):
                leave_out_lost(params_bar, spare, call)
            hand_over_params(params_bar, call, at)


@kernel
def evaluation(tree, params, gauge, assembly, state, work, touch, block, output, call, at):
    """Everything about one pack of states, left in the tables for whoever called."""
    take_pack(state, call, at, call.first)
    at.step = 0
    assemble(tree, params, gauge, assembly, call, at)
    fill(state.q, tree.n_q, call.q0, 0, at)
    fill(state.qd, tree.n_dofs, call.qd0, 0, at)
    controls(tree, state, call, at)
    dynamics(tree, params, assembly, state, work, touch, call, tree.n_shapes)
    if tree.has_impulses != 0:
        contact(tree, params, state, work, touch, block)
    if tree.n_rate_aims != 0:
        grafted_rates(tree, params, state, work)
    outputs(tree, assembly, work, output)
    if tree.n_nets != 0:
        ungraft(tree, params, assembly, state, work)


# the certificate --------------------------------------------------------------------------------------------------------


@kernel
def look_closely(tree, params, assembly, state, work, touch, block, margin, call):
    """Evaluate the present state, and note how near it was to other contacts and limits, while networks stand in for what they
    replace."""
    dynamics(tree, params, assembly, state, work, touch, call, tree.n_shapes)
    if tree.has_impulses != 0:
        contact(tree, params, state, work, touch, block)
    margins(tree, params, state, work, touch, block, margin)
    switches(tree, params, state, work, touch, margin)
    if tree.n_shapes != 0:
        # once more, with a longer look: which points are about to touch
        is_full = touch.is_full
        stretch_margins(tree, params, margin)
        detection(tree, params, assembly, work, touch)
        unstretch_margins(tree, params, margin)
        nearer(tree, params, touch, margin)
        touch.is_full = is_full
    if tree.n_nets != 0:
        ungraft(tree, params, assembly, state, work)


@sweep
def look_at_all(tree, params, assembly, state, work, touch, block, runge, output, margin, call):
    """The four evaluations of a Runge-Kutta step, each at its own state."""
    step(tree, params, assembly, state, work, touch, block, runge, output, call)
    for k in range(4):
        for i in range(tree.n_q):
            state.q[i] = runge.q[k * tree.n_q + i]
        for d in range(tree.n_dofs):
            state.qd[d] = runge.qd[k * tree.n_dofs + d]
        look_closely(tree, params, assembly, state, work, touch, block, margin, call)
        margin.record[1] = margin.record[0] if k == 0 else together(margin.record[1], margin.record[0])
    margin.record[0] = margin.record[1]


@kernel
def certify(tree, params, gauge, assembly, state, work, touch, block, runge, output, margin, call, at):
    """Repeat every step from its own state, and note how near it was to one with other contacts."""
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(state, call, at, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(tree, params, gauge, assembly, call, at)
        for k in range(call.steps):
            if at.is_stopped != 0:
                return
            at.step = k
            fill(state.q, tree.n_q, at_row(call.q, k, call.batch, tree.n_q), 0, at)
            fill(state.qd, tree.n_dofs, at_row(call.qd, k, call.batch, tree.n_dofs), 0, at)
            controls(tree, state, call, at)
            if tree.integrator == RK4:
                look_at_all(tree, params, assembly, state, work, touch, block, runge, output, margin, call)
            else:
                look_closely(tree, params, assembly, state, work, touch, block, margin, call)
            empty(margin.record, N_RECORD, at_row(call.record, k, call.batch, N_RECORD), 0, at)


KERNELS = (rollout, rollout_adjoint, evaluation, certify)
