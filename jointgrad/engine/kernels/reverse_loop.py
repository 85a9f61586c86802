"""The time loop backwards: steps are recomputed from states that were kept, and reversed one after the other."""

from ...compiler.elementary import select
from ...compiler.kernel import accumulate, add_lanes, all_finite, gather, kernel, lanes_of, scatter, sweep
from ...compiler.trace import traced
from .operators import zero
from .stages.assembly import assembly_stage_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs_adjoint
from .step import step, step_adjoint
from .time_loop import (
    ADVANCE,
    EACH_PACK,
    N_PARTS,
    NUMBER,
    ONCE,
    REVERSE,
    STORE,
    advance,
    and_finite,
    assemble,
    at_row,
    controls,
    empty,
    empty_state,
    fill,
    fill_state,
    finiteness,
    kept,
    take_pack,
)
from .zero_cotangents import zero_motion_bar, zero_work_bar


@traced
def kept_if_finite(lost, acc, x):
    """x, but nothing in a lane that is lost and where acc is not finite either."""
    return select(1.0 > select(1.0 > lost, 0.0, acc), x, 0.0)


@traced
def own_if_finite(lost, x):
    return kept_if_finite.fn(lost, x - x, x)


@traced
def none_if_sound(acc, values):
    return tuple(select(1.0 > acc, 0.0, x) for x in values)


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
def read_wrench_bars(frame, bar):
    """Of the state that the present step leads to."""
    at = frame.at
    at.step += 1
    read_output_bar(frame, bar.output.force, 3, 3)
    read_output_bar(frame, bar.output.torque, 3, 4)
    at.step -= 1


@sweep
def add_state_bars(frame, bar):
    """What came back through the step, and what the loss itself says, is the cotangent of the step before's next state."""
    call, at = frame.call, frame.at
    row, cell = at.step if call.each != 0 else 0, 0
    for part in range(N_PARTS):
        n, base = call.state_size[part], call.state_bar[part]
        if base != 0 and (call.each != 0 or at.step == call.steps):
            place = at_row(base, row, call.batch, n) + at.env * n * NUMBER
            gather(bar.next.all, cell, n, place, 0, n * NUMBER, at.count)
            for i in range(cell, cell + n):
                accumulate(bar.next.all, i, bar.state.all[i])
        else:
            for i in range(cell, cell + n):
                bar.next.all[i] = bar.state.all[i]
        cell += n


@kernel
def reverse_outputs(frame, bar):
    """Outputs of a state apart from any step: adds to the cotangents of the state."""
    tree = frame.tree
    kinematics(frame)
    zero_work_bar(frame, bar)
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
    if call.wants_wrenches != 0:
        read_wrench_bars(frame, bar)
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
    for i in range(tree.n_state):
        acc = and_finite(acc, bar.state.all[i])
    for i in range(tree.n_state):
        bar.state.all[i] = kept_if_finite(lost, acc, bar.state.all[i])
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
    for i in range(tree.n_state):
        spare.state[i] = bar.next.all[i]


@sweep
def restore(frame, bar, acc):
    tree, spare, call = frame.tree, frame.spare, frame.call
    for i in range(call.n_params):
        bar.params.all[i] = kept(acc, bar.params.all[i], spare.params[i])
    for i in range(call.n_assembly):
        bar.assembly.all[i] = kept(acc, bar.assembly.all[i], spare.assembly[i])
    for i in range(tree.n_state):
        bar.state.all[i] = kept(acc, bar.state.all[i], spare.state[i])
    for a in range(tree.n_actuators):
        bar.state.u[a] = kept(acc, bar.state.u[a], 0.0)
    if call.force != 0:
        for k in range(6 * tree.n_links):
            bar.state.force[k] = kept(acc, bar.state.force[k], 0.0)


@sweep
def store(frame, slot):
    n, state, slots = frame.tree.n_state, frame.state, frame.slots
    for i in range(n):
        slots.state[slot * n + i] = state.all[i]


@sweep
def recall(frame, slot):
    n, state, slots = frame.tree.n_state, frame.state, frame.slots
    for i in range(n):
        state.all[i] = slots.state[slot * n + i]


@sweep
def reverse_interval(frame, bar, interval):
    """Run the program that reverses one interval, from the state kept at its start."""
    call, at = frame.call, frame.at
    start = interval * call.interval
    fill_state(frame, frame.state.all, interval, call.kept, call.nowhere)
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
            recall(frame, argument)
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
    params, state, spare, call, at = frame.params, frame.state, frame.spare, frame.call, frame.at
    for env in range(call.first, call.last, lanes_of(state.q)):
        take_pack(frame, env)
        if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
            assemble(frame)
        for i in range(call.n_params):
            bar.params.all[i] = zero(params.world_dt[0])
        for i in range(call.n_assembly):
            bar.assembly.all[i] = zero(params.world_dt[0])
        zero_motion_bar(frame, bar)
        spare.lost[0] = zero(params.world_dt[0])
        at.step = call.steps
        if call.wants_outputs != 0:
            fill_state(frame, state.all, 0, call.last_state, call.nowhere)
            read_output_bars(frame, bar)
            reverse_outputs(frame, bar)
        add_state_bars(frame, bar)
        for interval in range((call.steps - 1) // call.interval, -1, -1):
            reverse_interval(frame, bar, interval)
            if at.is_stopped != 0:
                return
        empty_state(frame, bar.next.all, 0, call.start_bar, call.nowhere)
        if call.wants_params != 0:
            assembly_stage_adjoint(frame, bar)
            if not all_finite(spare.lost[0]):
                leave_out_lost(frame, bar)
            hand_over_params(frame, bar)
