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
def fill(frame, field, n, base, base_dot):
    """n numbers per environment, from one row of the user's array."""
    at = frame.at
    offset = at.env * n * NUMBER
    dot = base_dot
    if base_dot != 0:
        dot += offset
    gather(field, 0, n, base + offset, dot, n * NUMBER, at.count)


@sweep
def empty(frame, field, n, base, base_dot):
    """n numbers per environment, into one row of the user's array."""
    at = frame.at
    offset = at.env * n * NUMBER
    scatter(field, 0, n, base + offset, base_dot + offset, n * NUMBER, at.count)


@sweep
def at_row(base, row, batch, n):
    """Address of row `row` of an array (time, batch, n); 0 stays 0."""
    if base == 0:
        return 0
    return base + row * batch * n * NUMBER


@kernel
def assemble(frame):
    """Parameters of these environments, and what the step needs of them."""
    tree, gauge, call, at = frame.tree, frame.gauge, frame.call, frame.at
    cell = 0
    for f in range(call.n_fields):
        stride, dot = call.param_stride[f], call.param_dot[f]
        if dot != 0:
            dot += at.env * stride
        gather(frame.params.all, cell, call.param_size[f], call.param[f] + at.env * stride, dot, stride, at.count)
        cell += call.param_size[f]
    per_env = 0 if call.gauge_is_shared != 0 else tree.n_frames * NUMBER
    gather(gauge.rotation, 0, 9 * tree.n_frames, call.gauge_rotation + 9 * at.env * per_env, 0, 9 * per_env, at.count)
    gather(gauge.axis, 0, 3 * tree.n_frames, call.gauge_axis + 3 * at.env * per_env, 0, 3 * per_env, at.count)
    assembly_stage(frame)


@sweep
def controls(frame):
    """u and outside forces of the present step."""
    tree, state, call = frame.tree, frame.state, frame.call
    k, nu, batch = frame.at.step, tree.n_actuators, call.batch
    if call.u != 0:
        fill(frame, state.u, nu, at_row(call.u, k, batch, nu), at_row(call.u_dot, k, batch, nu))
    if call.force != 0:
        dot = call.force_dot
        if dot != 0:
            dot += k * call.force_step
        fill(frame, state.force, 6 * tree.n_links, call.force + k * call.force_step, dot)


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
def finiteness(frame):
    """Zero in the lanes whose next state is finite, NaN in the others."""
    tree, work = frame.tree, frame.work
    of_q = zero(frame.params.world_dt[0])
    of_qd = of_q
    for i in range(tree.n_q):
        of_q = and_finite(of_q, work.q_next[i])
    for d in range(tree.n_dofs):
        of_qd = and_finite(of_qd, work.qd_next[d])
    return and_finite(of_q, of_qd)


@kernel
def advance(frame):
    """One step; an environment that leaves the finite numbers stays where it was, and the others do not notice."""
    tree, state, work, output, call, at = frame.tree, frame.state, frame.work, frame.output, frame.call, frame.at
    controls(frame)
    step(frame)
    acc = finiteness(frame)
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
def write_output(frame, field, width, number):
    call, at = frame.call, frame.at
    n = width * frame.tree.n_links
    if call.output[number] != 0:
        dot = at_row(call.output_dot[number], at.step, call.batch, n)
        empty(frame, field, n, at_row(call.output[number], at.step, call.batch, n), dot)


@kernel
def write_outputs(frame):
    """Named outputs of the present state."""
    output = frame.output
    kinematics(frame)
    outputs(frame)
    write_output(frame, output.position, 3, 0)
    write_output(frame, output.rotation, 9, 1)
    write_output(frame, output.velocity, 6, 2)


@sweep
def write_loads(frame):
    """What contact did to links in the step that led to the present state."""
    output = frame.output
    write_output(frame, output.force, 3, 3)
    write_output(frame, output.torque, 3, 4)


@sweep
def keep_state(frame):
    tree, state, call = frame.tree, frame.state, frame.call
    row, batch, nq, nv = frame.at.step // call.interval, call.batch, tree.n_q, tree.n_dofs
    empty(frame, state.q, nq, at_row(call.q, row, batch, nq), at_row(call.q_dot, row, batch, nq))
    empty(frame, state.qd, nv, at_row(call.qd, row, batch, nv), at_row(call.qd_dot, row, batch, nv))


@sweep
def take_pack(frame, env):
    """Turn to the environments from `env` on, as many as a pack holds."""
    call, at = frame.call, frame.at
    lanes = lanes_of(frame.state.q)
    at.env = env
    at.count = lanes if call.last - env >= lanes else call.last - env


@kernel
def rollout(frame):
    tree, state, call, at = frame.tree, frame.state, frame.call, frame.at
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(frame, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(frame)
        fill(frame, state.q, tree.n_q, call.q0, call.q0_dot)
        fill(frame, state.qd, tree.n_dofs, call.qd0, call.qd0_dot)
        if tree.has_impulses != 0:
            forget(frame)
        for k in range(call.steps):
            if at.is_stopped != 0:
                return
            at.step = k
            if call.q != 0 and k % call.interval == 0:
                keep_state(frame)
            if call.wants_outputs != 0:
                write_outputs(frame)
            advance(frame)
            if call.wants_loads != 0:
                at.step = k + 1
                write_loads(frame)
        at.step = call.steps
        if call.wants_outputs != 0:
            write_outputs(frame)
        empty(frame, state.q, tree.n_q, call.q_last, call.q_last_dot)
        empty(frame, state.qd, tree.n_dofs, call.qd_last, call.qd_last_dot)
        if call.settling != 0:
            empty(frame, frame.block.unsettled, 3, call.settling, 0)


# the reverse ------------------------------------------------------------------------------------------------------------


@sweep
def read_output_bar(frame, field, width, number):
    call = frame.call
    n = width * frame.tree.n_links
    if call.output_bar[number] != 0:
        fill(frame, field, n, at_row(call.output_bar[number], frame.at.step, call.batch, n), 0)


@sweep
def read_output_bars(frame, bar):
    read_output_bar(frame, bar.output.position, 3, 0)
    read_output_bar(frame, bar.output.rotation, 9, 1)
    read_output_bar(frame, bar.output.velocity, 6, 2)


@sweep
def read_load_bars(frame, bar):
    """Of the state that the present step leads to."""
    at = frame.at
    at.step += 1
    read_output_bar(frame, bar.output.force, 3, 3)
    read_output_bar(frame, bar.output.torque, 3, 4)
    at.step -= 1


@sweep
def add_own(frame, field, total, base, n):
    """field = total + the loss's own cotangent of the present state, where it has one."""
    call, at = frame.call, frame.at
    if base != 0 and (call.each != 0 or at.step == call.steps):
        row = at.step if call.each != 0 else 0
        fill(frame, field, n, at_row(base, row, call.batch, n), 0)
        for i in range(n):
            accumulate(field, i, total[i])
    else:
        for i in range(n):
            field[i] = total[i]


@sweep
def add_state_bars(frame, bar):
    """What came back through the step, and what the loss itself says, is the cotangent of the step before's next state."""
    tree, call = frame.tree, frame.call
    add_own(frame, bar.work.q_next, bar.state.q, call.q_bar, tree.n_q)
    add_own(frame, bar.work.qd_next, bar.state.qd, call.qd_bar, tree.n_dofs)


@kernel
def reverse_outputs(frame, bar):
    """Outputs of a state apart from any step: adds to the cotangents of the state."""
    tree = frame.tree
    kinematics(frame)
    clear_work(frame, bar)
    nothing = bar.work.v[tree.n_bodies]
    for b in range(tree.n_bodies):
        bar.work.c[b] = nothing
    for d in range(tree.n_dofs):
        bar.work.S[d] = nothing
    outputs_adjoint(frame, bar)
    kinematics_adjoint(frame, bar)


@sweep
def only_frozen(frame, bar, acc):
    """Output cotangents of the lanes that stayed where they were; the others have had theirs."""
    for j in range(frame.tree.n_links):
        bar.output.position[j] = none_if_sound(acc, bar.output.position[j])
        bar.output.rotation[j] = none_if_sound(acc, bar.output.rotation[j])
        bar.output.velocity[j] = none_if_sound(acc, bar.output.velocity[j])


@kernel
def reverse_step(frame, bar):
    """Recompute a step from its state, then reverse it. In a lane that diverged the step changed nothing, and
    the lane is lost: see `end_lost` for the steps before."""
    tree, spare, call, at = frame.tree, frame.spare, frame.call, frame.at
    controls(frame)
    step(frame)
    if call.wants_outputs != 0:
        read_output_bars(frame, bar)
    if call.wants_loads != 0:
        read_load_bars(frame, bar)
    acc = finiteness(frame)
    is_sound = all_finite(acc)
    if not is_sound:
        set_aside(frame, bar)
        spare.lost[0] = and_finite(spare.lost[0], acc)
    step_adjoint(frame, bar)
    if not is_sound:
        restore(frame, bar, acc)
        if call.wants_outputs != 0:
            only_frozen(frame, bar, acc)
            reverse_outputs(frame, bar)
    if not all_finite(spare.lost[0]):
        end_lost(frame, bar)
    if call.u_bar != 0:
        nu = tree.n_actuators
        empty(frame, bar.state.u, nu, at_row(call.u_bar, at.step, call.batch, nu), 0)
    if call.force_bar != 0:
        n = 6 * tree.n_links
        empty(frame, bar.state.force, n, at_row(call.force_bar, at.step, call.batch, n), 0)
    add_state_bars(frame, bar)


@sweep
def end_lost(frame, bar):
    """On its way to the step that diverged a lane may have gone through steps whose derivatives are not finite: what it hands
    back ends there. (A cotangent of zero times infinity ends there, too, and so is the zero that it should be.)"""
    tree = frame.tree
    lost = frame.spare.lost[0]
    acc = zero(lost)
    for i in range(tree.n_q):
        acc = and_finite(acc, bar.state.q[i])
    for d in range(tree.n_dofs):
        acc = and_finite(acc, bar.state.qd[d])
    for i in range(tree.n_q):
        bar.state.q[i] = kept_if_finite(lost, acc, bar.state.q[i])
    for d in range(tree.n_dofs):
        bar.state.qd[d] = kept_if_finite(lost, acc, bar.state.qd[d])
    for a in range(tree.n_actuators):
        bar.state.u[a] = own_if_finite(lost, bar.state.u[a])
    if frame.call.force != 0:
        for k in range(6 * tree.n_links):
            bar.state.force[k] = own_if_finite(lost, bar.state.force[k])


@sweep
def set_aside(frame, bar):
    tree, spare, call = frame.tree, frame.spare, frame.call
    for i in range(call.n_params):
        spare.params[i] = bar.params.all[i]
    for i in range(call.n_assembly):
        spare.assembly[i] = bar.assembly.all[i]
    for i in range(tree.n_q):
        spare.q[i] = bar.work.q_next[i]
    for d in range(tree.n_dofs):
        spare.qd[d] = bar.work.qd_next[d]


@sweep
def restore(frame, bar, acc):
    tree, spare, call = frame.tree, frame.spare, frame.call
    for i in range(call.n_params):
        bar.params.all[i] = kept(acc, bar.params.all[i], spare.params[i])
    for i in range(call.n_assembly):
        bar.assembly.all[i] = kept(acc, bar.assembly.all[i], spare.assembly[i])
    for i in range(tree.n_q):
        bar.state.q[i] = kept(acc, bar.state.q[i], spare.q[i])
    for d in range(tree.n_dofs):
        bar.state.qd[d] = kept(acc, bar.state.qd[d], spare.qd[d])
    for a in range(tree.n_actuators):
        bar.state.u[a] = kept(acc, bar.state.u[a], 0.0)
    if call.force != 0:
        for k in range(6 * tree.n_links):
            bar.state.force[k] = kept(acc, bar.state.force[k], 0.0)


@sweep
def store(frame, slot):
    tree, state, slots = frame.tree, frame.state, frame.slots
    for i in range(tree.n_q):
        slots.q[slot * tree.n_q + i] = state.q[i]
    for d in range(tree.n_dofs):
        slots.qd[slot * tree.n_dofs + d] = state.qd[d]


@sweep
def load(frame, slot):
    tree, state, slots = frame.tree, frame.state, frame.slots
    for i in range(tree.n_q):
        state.q[i] = slots.q[slot * tree.n_q + i]
    for d in range(tree.n_dofs):
        state.qd[d] = slots.qd[slot * tree.n_dofs + d]


@sweep
def reverse_interval(frame, bar, interval):
    """Run the program that reverses one interval, from the state kept at its start."""
    tree, state, call, at = frame.tree, frame.state, frame.call, frame.at
    nq, nv, start = tree.n_q, tree.n_dofs, interval * call.interval
    fill(frame, state.q, nq, at_row(call.q, interval, call.batch, nq), 0)
    fill(frame, state.qd, nv, at_row(call.qd, interval, call.batch, nv), 0)
    at.step = start
    is_last = start + call.interval >= call.steps
    line = call.program_length if is_last else 0
    end = line + (call.tail_length if is_last else call.program_length)
    while line < end:
        if at.is_stopped != 0:
            return
        action, argument, place = call.program[3 * line], call.program[3 * line + 1], call.program[3 * line + 2]
        if action == REVERSE:
            reverse_step(frame, bar)
        elif action == ADVANCE:
            for _ in range(argument):
                if at.is_stopped != 0:
                    return
                advance(frame)
                at.step += 1
        elif action == STORE:
            store(frame, argument)
        else:
            load(frame, argument)
            at.step = start + place
        line += 1


@sweep
def leave_out_lost(frame, bar):
    """A lost lane has no part in what environments share, and of its own keeps what is finite."""
    call = frame.call
    cell, lost = 0, frame.spare.lost[0]
    for f in range(call.n_fields):
        for k in range(cell, cell + call.param_size[f]):
            if call.param_stride[f] == 0:
                bar.params.all[k] = kept(lost, bar.params.all[k], 0.0)
            else:
                bar.params.all[k] = own_if_finite(lost, bar.params.all[k])
        cell += call.param_size[f]


@sweep
def hand_over_params(frame, bar):
    """Shared parameters: the sum over the environments of a chunk, in their order. Others: to each its own."""
    call, at = frame.call, frame.at
    cell = 0
    for f in range(call.n_fields):
        stride, size = call.param_stride[f], call.param_size[f]
        if stride == 0:
            row = call.params_sum + (at.env // call.chunk) * call.n_params * NUMBER
            for k in range(cell, cell + size):
                add_lanes(bar.params.all, k, row + k * NUMBER, at.count)
        else:
            scatter(bar.params.all, cell, size, call.param_bar[f] + at.env * stride, 0, stride, at.count)
        cell += size


@kernel
def rollout_adjoint(frame, bar):
    tree, params, state, spare, call, at = frame.tree, frame.params, frame.state, frame.spare, frame.call, frame.at
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(frame, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(frame)
        for i in range(call.n_params):
            bar.params.all[i] = zero(params.world_dt[0])
        for i in range(call.n_assembly):
            bar.assembly.all[i] = zero(params.world_dt[0])
        clear_motion(frame, bar)
        spare.lost[0] = zero(params.world_dt[0])
        at.step = call.steps
        if call.wants_outputs != 0:
            fill(frame, state.q, tree.n_q, call.q_last, 0)
            fill(frame, state.qd, tree.n_dofs, call.qd_last, 0)
            read_output_bars(frame, bar)
            reverse_outputs(frame, bar)
        add_state_bars(frame, bar)
        for interval in range((call.steps - 1) // call.interval, -1, -1):
            reverse_interval(frame, bar, interval)
            if at.is_stopped != 0:
                return
        empty(frame, bar.work.q_next, tree.n_q, call.q0_bar, 0)
        empty(frame, bar.work.qd_next, tree.n_dofs, call.qd0_bar, 0)
        if call.wants_params != 0:
            assembly_stage_adjoint(frame, bar)
            if not all_finite(spare.lost[0]):
                leave_out_lost(frame, bar)
            hand_over_params(frame, bar)


@kernel
def evaluation(frame):
    """Everything about one pack of states, left in the tables for whoever called."""
    tree, state, call = frame.tree, frame.state, frame.call
    take_pack(frame, call.first)
    frame.at.step = 0
    assemble(frame)
    fill(frame, state.q, tree.n_q, call.q0, 0)
    fill(frame, state.qd, tree.n_dofs, call.qd0, 0)
    controls(frame)
    dynamics(frame, tree.n_shapes)
    if tree.has_impulses != 0:
        contact(frame)
    if tree.n_rate_aims != 0:
        grafted_rates(frame)
    outputs(frame)
    if tree.n_nets != 0:
        ungraft(frame)


# the certificate --------------------------------------------------------------------------------------------------------


@kernel
def look_closely(frame):
    """Evaluate the present state, and note how near it was to other contacts and limits, while networks stand in for what they
    replace."""
    tree, touch = frame.tree, frame.touch
    dynamics(frame, tree.n_shapes)
    if tree.has_impulses != 0:
        contact(frame)
    margins(frame)
    switches(frame)
    if tree.n_shapes != 0:
        # once more, with a longer look: which points are about to touch
        is_full = touch.is_full
        stretch_margins(frame)
        detection(frame)
        unstretch_margins(frame)
        nearer(frame)
        touch.is_full = is_full
    if tree.n_nets != 0:
        ungraft(frame)


@sweep
def look_at_all(frame):
    """The four evaluations of a Runge-Kutta step, each at its own state."""
    tree, state, runge, margin = frame.tree, frame.state, frame.runge, frame.margin
    step(frame)
    for k in range(4):
        for i in range(tree.n_q):
            state.q[i] = runge.q[k * tree.n_q + i]
        for d in range(tree.n_dofs):
            state.qd[d] = runge.qd[k * tree.n_dofs + d]
        look_closely(frame)
        margin.record[1] = margin.record[0] if k == 0 else together(margin.record[1], margin.record[0])
    margin.record[0] = margin.record[1]


@kernel
def certify(frame):
    """Repeat every step from its own state, and note how near it was to one with other contacts."""
    tree, state, call, at = frame.tree, frame.state, frame.call, frame.at
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(frame, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(frame)
        for k in range(call.steps):
            if at.is_stopped != 0:
                return
            at.step = k
            fill(frame, state.q, tree.n_q, at_row(call.q, k, call.batch, tree.n_q), 0)
            fill(frame, state.qd, tree.n_dofs, at_row(call.qd, k, call.batch, tree.n_dofs), 0)
            controls(frame)
            if tree.integrator == RK4:
                look_at_all(frame)
            else:
                look_closely(frame)
            empty(frame, frame.margin.record, N_RECORD, at_row(call.record, k, call.batch, N_RECORD), 0)


KERNELS = (rollout, rollout_adjoint, evaluation, certify)
