"""Points that touch, limits, dry friction, loops -> what impulses add to the rates (Qiao 2021, sec. 4.2).

All rows of a world are one problem, solved by a fixed number of sweeps; its reverse is exact for what was computed.
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
    "block.share", "block.whole", "block.balance", "block.unsettled", "work.kick",
)  # fmt: skip


@sweep
def no_kick(tree, params, work):
    for d in range(tree.n_dofs):
        work.kick[d] = zero(params.world_dt[0])


@kernel
def kicks(tree, params, work, touch, block):
    sum_pushes(tree, params, block)
    if block.bounces != 0:
        restrain(tree, params, work, touch, block)
    rates(tree, work, block)


@kernel
def contact(tree, params, state, work, touch, block):
    blocks(tree, params, state, work, touch, block)
    if block.n == 0:
        no_kick(tree, params, work)
    else:
        if tree.is_implicit != 0:
            implicit(tree, params, work, touch, block)
            return
        if tree.has_matrix != 0:
            couplings(tree, params, work, touch, block)
            sweeps(tree, params, block)
        else:
            own_couplings(tree, params, work, block)
            sums(tree, params, work, block)
        settle(tree, params, touch, block)
        kicks(tree, params, work, touch, block)


@kernel
def contact_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, touch, touch_bar, block,
    block_bar, call
):  # fmt: skip
    """Reads work_bar.kick, and block_bar.load where contact forces are outputs; adds to the cotangents of all that it reads."""
    if block.n > 0 and tree.is_implicit != 0:
        implicit_adjoint(tree, params, assembly_bar, work, work_bar, multiplier, touch, block, block_bar, call)
        masses_adjoint(tree, params, assembly, assembly_bar, work, work_bar, multiplier, block, block_bar, call)
        if call.wants_params != 0 or tree.n_mass_aims != 0:
            lightness_adjoint(tree, params, assembly_bar, block, block_bar)
        rows_adjoint(
            tree, params, params_bar, state, state_bar, work, work_bar, multiplier, touch, touch_bar, block, block_bar
        )
    elif block.n > 0:
        multipliers(tree, work, work_bar.kick, multiplier)
        impulse_cotangents(tree, params, multiplier, block, block_bar)
        if call.wants_loads != 0:
            loads_felt(block, block_bar)
        if block.restrained != 0:
            unrestrain(tree, params, work, block)
            restrain_adjoint(tree, params, assembly_bar, work, touch, block, block_bar, call)
        if tree.has_matrix != 0:
            sweeps_adjoint(tree, params, block, block_bar)
            matrix_adjoint(tree, params, block, block_bar)
            mixtures(tree, params, work, block, block_bar)
        else:
            sums_adjoint(tree, params, work, block, block_bar)
        if block.restrained != 0:
            square_adjoint(tree, work, block, block_bar)
            restrain_again(tree, work, block)
        inertia_adjoint(tree, params, assembly, assembly_bar, work, work_bar, multiplier, block, block_bar, call)
        if call.wants_params != 0 or tree.n_mass_aims != 0:
            lightness_adjoint(tree, params, assembly_bar, block, block_bar)
        rows_adjoint(
            tree, params, params_bar, state, state_bar, work, work_bar, multiplier, touch, touch_bar, block, block_bar
        )
