"""Points that touch, limits, dry friction, loops -> what impulses add to the rates (Qiao 2021, sec. 4.2).

All rows of a world are one problem. It is solved by a fixed number of sweeps, whose reverse is exact for what was computed, or
as a convex one to the end (implicit.py; its pieces: convex_law.py, joint_space.py, newton.py, bounces.py, implicit_margins.py).
The pieces: paths.py (how trees answer), rows.py and ties.py (the problem), gauss_seidel.py (its solution and the same
backwards), clamps.py (the bounds in it), running_sums.py (the same for many contacts), settling.py (whether the sweeps were
enough), energy.py (bounces do no work), response.py (impulses to rates, and back to inertias), pulls.py (back to rows and
parameters). Stages of their own, for those who ask: loads.py (forces on links), margins.py (how near another outcome was).
"""

from ....compiler.kernel import kernel, sweep
from ...operators import zero
from ..articulated import multipliers
from .energy import restrain, restrain_adjoint, restrain_again, square_adjoint, unrestrain
from .gauss_seidel import matrix_adjoint, sweeps, sweeps_adjoint
from .give import lightness_adjoint
from .implicit import implicit, implicit_adjoint, masses_adjoint
from .loads import loads_felt
from .pulls import impulse_cotangents, rows_adjoint
from .response import inertia_adjoint, mixtures, rates, sum_pushes
from .rows import blocks, couplings, own_couplings
from .running_sums import sums, sums_adjoint
from .settling import settle

READS = (
    "state.q", "state.qd", "assembly.inertia", "work.pose", "work.arm", "work.S", "work.v", "work.armature", "work.I",
    "work.U", "work.D_inv", "work.factor", "work.rise", "work.qdd", "touch.shape", "touch.point", "touch.normal", "touch.gap",
    "params.joint_limit", "params.joint_friction", "params.joint_mimic", "params.pair_friction", "params.pair_torsion",
    "params.pair_rolling", "params.pair_restitution", "params.pair_baumgarte", "params.pair_compliance",
    "params.pair_softness", "params.pair_margin", "params.pair_max_push_out_speed", "params.world_baumgarte",
    "params.world_compliance", "params.world_softness", "params.world_limit_margin", "params.world_dt",
)  # fmt: skip
WRITES = (
    "block.rows", "block.effort", "block.at_root", "block.answer", "block.weight", "block.weight2", "block.closing",
    "block.approach", "block.A", "block.b", "block.give", "block.lightness", "block.soft", "block.low", "block.high",
    "block.friction", "block.active", "block.D", "block.G", "block.start", "block.x", "block.side", "block.pushed", "block.motion",
    "block.share", "block.whole", "block.balance", "block.unsettled", "block.column", "block.gained", "block.composite",
    "block.mass", "block.own_mass", "block.H", "block.u", "block.du", "block.gain", "block.cross", "block.level", "block.y",
    "block.mass_y", "block.gradient", "block.step", "block.mass_step", "block.excess", "work.kick",
)  # fmt: skip


@sweep
def no_kick(frame):
    for d in range(frame.tree.n_dofs):
        frame.work.kick[d] = zero(frame.params.world_dt[0])


@kernel
def kicks(frame):
    sum_pushes(frame)
    if frame.block.bounces != 0:
        restrain(frame)
    rates(frame)


@kernel
def contact(frame):
    tree = frame.tree
    blocks(frame)
    if frame.block.n == 0:
        no_kick(frame)
    else:
        if tree.is_implicit != 0:
            implicit(frame)
            return
        if tree.has_matrix != 0:
            couplings(frame)
            sweeps(frame)
        else:
            own_couplings(frame)
            sums(frame)
        settle(frame)
        kicks(frame)


@kernel
def contact_adjoint(frame, bar):
    """Reads bar.work.kick, and bar.block.load where contact forces are outputs; adds to the cotangents of all that it reads."""
    tree, block, call = frame.tree, frame.block, frame.call
    if block.n > 0 and tree.is_implicit != 0:
        implicit_adjoint(frame, bar)
        masses_adjoint(frame, bar)
        if call.wants_params != 0 or tree.n_mass_aims != 0:
            lightness_adjoint(frame, bar)
        rows_adjoint(frame, bar)
    elif block.n > 0:
        multipliers(frame, bar.work.kick)
        impulse_cotangents(frame, bar)
        if call.wants_loads != 0:
            loads_felt(frame, bar)
        if block.restrained != 0:
            unrestrain(frame)
            restrain_adjoint(frame, bar)
        if tree.has_matrix != 0:
            sweeps_adjoint(frame, bar)
            matrix_adjoint(frame, bar)
            mixtures(frame, bar)
        else:
            sums_adjoint(frame, bar)
        if block.restrained != 0:
            square_adjoint(frame, bar)
            restrain_again(frame)
        inertia_adjoint(frame, bar)
        if call.wants_params != 0 or tree.n_mass_aims != 0:
            lightness_adjoint(frame, bar)
        rows_adjoint(frame, bar)
