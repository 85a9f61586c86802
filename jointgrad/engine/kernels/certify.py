"""A state evaluated on its own, and every step of a motion looked at once more: how near it was to one with other contacts."""

from ...compiler.kernel import kernel, lanes_of, sweep
from .dynamics import dynamics
from .margins import margins, nearer, stretch_margins, together, unstretch_margins
from .runge_kutta import go_to
from .stages.contact import contact
from .stages.detection import detection
from .stages.grafts import grafted_rates, ungraft
from .stages.outputs import outputs
from .step import step
from .switches import switches
from .time_loop import EACH_PACK, ONCE, assemble, at_row, controls, empty, fill_state, take_pack
from .workspace import RECORD, RK4

N_RECORD = len(RECORD)


@kernel
def evaluation(frame):
    """Everything about one pack of states, left in the tables for whoever called."""
    tree, call = frame.tree, frame.call
    take_pack(frame, call.first)
    frame.at.step = 0
    assemble(frame)
    fill_state(frame, frame.state.all, 0, call.start, call.nowhere)
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
    margin = frame.margin
    step(frame)
    for k in range(4):
        go_to(frame, k)
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
            fill_state(frame, state.all, k, call.kept, call.nowhere)
            controls(frame)
            if tree.integrator == RK4:
                look_at_all(frame)
            else:
                look_closely(frame)
            empty(frame, frame.margin.record, N_RECORD, at_row(call.record, k, call.batch, N_RECORD), 0)
