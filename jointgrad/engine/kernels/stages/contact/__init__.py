"""Points that touch, limits, dry friction, loops -> what impulses add to the rates (Qiao 2021, sec. 4.2).

All rows of a world are one problem; its reverse is exact for what was computed.
The pieces: paths.py (how trees answer), rows.py and constraints.py (the problem: points, joints and loops), their reverses beside
them, solvers.py (who solves it, goes back, and tells margins: gauss_seidel.py, matrix_free.py for many contacts,
implicit.py to the end), clamps.py and
clamping.py (their bounds), settling.py (whether the sweeps were enough), energy.py (bounces do no work), response.py (impulses to
rates, and back to inertias). A stage of its own, for those who ask: wrenches.py (forces on links).
"""

from .....compiler.kernel import kernel, sweep
from ...operators import zero
from .give import lightness_adjoint
from .rows import blocks
from .rows_reverse import rows_adjoint
from .solvers import solve, solve_adjoint

READS = (
    "state.q", "state.qd", "assembly.inertia", "work.pose", "work.arm", "work.S", "work.v", "work.armature", "work.I",
    "work.U", "work.D_inv", "work.factor", "work.a_joints", "work.qdd", "touch.shape", "touch.point", "touch.normal", "touch.gap",
    "params.joint_limit", "params.joint_friction", "params.joint_mimic", "params.pair_friction", "params.pair_torsion",
    "params.pair_rolling", "params.pair_restitution", "params.pair_baumgarte", "params.pair_compliance",
    "params.pair_softness", "params.pair_margin", "params.pair_max_push_out_speed", "params.world_baumgarte",
    "params.world_compliance", "params.world_softness", "params.world_limit_margin", "params.world_dt",
)  # fmt: skip
WRITES = (
    "block.rows", "block.effort", "block.at_root", "block.answer", "block.weight", "block.weight2", "block.closing",
    "block.approach", "block.A", "block.b", "block.give", "block.lightness", "block.soft", "block.low", "block.high",
    "block.friction", "block.active", "block.D", "block.G", "block.start", "block.x", "block.side",
    "block.impulse", "block.sticks", "block.pushed", "block.motion", "block.share",
    "block.whole", "block.balance", "block.unsettled", "block.column", "block.gained", "block.composite",
    "block.mass", "block.own_mass", "block.H", "block.u", "block.du", "block.gain", "block.cross", "block.level", "block.y",
    "block.mass_y", "block.gradient", "block.step", "block.mass_step", "block.excess", "work.qd_jump",
)  # fmt: skip


@sweep
def no_jump(frame):
    for d in range(frame.tree.n_dofs):
        frame.work.qd_jump[d] = zero(frame.params.world_dt[0])


@kernel
def contact(frame):
    blocks(frame)
    if frame.block.n == 0:
        no_jump(frame)
    else:
        solve(frame)


@kernel
def contact_adjoint(frame, bar):
    """Reads bar.work.qd_jump, and bar.block.wrench where contact forces are outputs; adds to cotangents of all that it reads."""
    if frame.block.n > 0:
        solve_adjoint(frame, bar)
        if frame.call.wants_params != 0 or frame.tree.n_mass_aims != 0:
            lightness_adjoint(frame, bar)
        rows_adjoint(frame, bar)
