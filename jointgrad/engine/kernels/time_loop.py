"""Many steps of many environments: what one worker does with its share of a batch.

A pack of environments goes through the whole motion before the next pack starts, so that its workspace stays in the
processor's cache. The user's arrays, axes (time, batch, value), are read and written in place. A call that is stopped
(`at.is_stopped`, set by who waits for it) ends before its next step; what it leaves in its tables is of no use.
"""

from ...compiler.elementary import select
from ...compiler.kernel import all_finite, gather, kernel, lanes_of, mark, scatter, sweep
from ...compiler.trace import traced
from .operators import zero
from .stages.assembly import assembly_stage
from .stages.contact.settling import forget
from .stages.kinematics import kinematics
from .stages.outputs import outputs
from .step import step
from .workspace import PARTS

# what a program does: keep the present state in a slot, go back to one, go on some steps, reverse one step
STORE, LOAD, ADVANCE, REVERSE = range(4)
# when parameters are assembled: they are already, once for all environments, or anew for every pack
DONE, ONCE, EACH_PACK = range(3)
NUMBER = 8  # bytes
N_PARTS = len(PARTS)


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


@sweep
def fill_state(frame, field, row, bases, dots):
    """The parts of a state, laid end to end in a field, from a row of each of the user's arrays."""
    call, at = frame.call, frame.at
    cell = 0
    for part in range(N_PARTS):
        n = call.state_size[part]
        base, dot = at_row(bases[part], row, call.batch, n), at_row(dots[part], row, call.batch, n)
        offset = at.env * n * NUMBER
        if dot != 0:
            dot += offset
        gather(field, cell, n, base + offset, dot, n * NUMBER, at.count)
        cell += n


@sweep
def empty_state(frame, field, row, bases, dots):
    """The converse."""
    call, at = frame.call, frame.at
    cell = 0
    for part in range(N_PARTS):
        n = call.state_size[part]
        base, dot = at_row(bases[part], row, call.batch, n), at_row(dots[part], row, call.batch, n)
        offset = at.env * n * NUMBER
        scatter(field, cell, n, base + offset, dot + offset, n * NUMBER, at.count)
        cell += n


@kernel
def assemble(frame):
    """Parameters of these environments, and what the step needs of them."""
    tree, axis_reference, call, at = frame.tree, frame.axis_reference, frame.call, frame.at
    cell = 0
    for f in range(call.n_fields):
        stride, dot = call.param_stride[f], call.param_dot[f]
        if dot != 0:
            dot += at.env * stride
        gather(frame.params.all, cell, call.param_size[f], call.param[f] + at.env * stride, dot, stride, at.count)
        cell += call.param_size[f]
    per_env = 0 if call.axis_reference_is_shared != 0 else tree.n_frames * NUMBER
    n, first = tree.n_frames, at.env * per_env
    gather(axis_reference.rotation, 0, 9 * n, call.axis_reference_rotation + 9 * first, 0, 9 * per_env, at.count)
    gather(axis_reference.axis, 0, 3 * n, call.axis_reference_axis + 3 * first, 0, 3 * per_env, at.count)
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
def none_if_lost(acc, values):
    return tuple(select(1.0 > acc, x, 0.0) for x in values)


@sweep
def finiteness(frame):
    """Zero in the lanes whose next state is finite, NaN in the others."""
    acc = zero(frame.params.world_dt[0])
    for i in range(frame.tree.n_state):
        acc = and_finite(acc, frame.next.all[i])
    return acc


@kernel
def advance(frame):
    """One step; an environment that leaves the finite numbers stays where it was, and the others do not notice."""
    tree, state, output, call, at = frame.tree, frame.state, frame.output, frame.call, frame.at
    controls(frame)
    step(frame)
    acc = finiteness(frame)
    if all_finite(acc):
        for i in range(tree.n_state):
            state.all[i] = frame.next.all[i]
    else:
        if call.status != 0:
            mark(acc, call.status + at.env * NUMBER, at.step, at.count)
        for i in range(tree.n_state):
            state.all[i] = kept(acc, frame.next.all[i], state.all[i])
        if call.wants_wrenches != 0:
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
def write_wrenches(frame):
    """What contact did to links in the step that led to the present state."""
    output = frame.output
    write_output(frame, output.force, 3, 3)
    write_output(frame, output.torque, 3, 4)


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
        fill_state(frame, state.all, 0, call.start, call.start_dot)
        if tree.has_impulses != 0:
            forget(frame)
        for k in range(call.steps):
            if at.is_stopped != 0:
                return
            at.step = k
            if call.kept[0] != 0 and k % call.interval == 0:
                empty_state(frame, state.all, k // call.interval, call.kept, call.kept_dot)
            if call.wants_outputs != 0:
                write_outputs(frame)
            advance(frame)
            if call.wants_wrenches != 0:
                at.step = k + 1
                write_wrenches(frame)
        at.step = call.steps
        if call.wants_outputs != 0:
            write_outputs(frame)
        empty_state(frame, state.all, 0, call.last_state, call.last_state_dot)
        if call.settling != 0:
            empty(frame, frame.block.unsettled, 3, call.settling, 0)
