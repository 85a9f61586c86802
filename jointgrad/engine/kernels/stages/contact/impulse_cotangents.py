"""What impulses receive of what they added to the rates: x_bar = J lambda."""

from .....algebra.spatial import work as motion_work
from .....compiler.kernel import sweep
from .....compiler.trace import traced
from .....model.arrays import JOINT_CONSTRAINT
from ...operators import zero
from .paths import BOUNDED, three


@traced
def felt_by_rows(rows_a, m_a, rows_b, m_b):
    """Minus the motions m, along rows: the cotangent of the impulses."""
    return tuple(
        -(motion_work(m_a, f) + motion_work(m_b, g)) for f, g in zip(three(rows_a), three(rows_b), strict=True)
    )


@traced
def felt_by_joint(weight, mu, weight2, mu2):
    return -(weight * mu + weight2 * mu2)


@sweep
def impulse_cotangents(frame, bar):
    """x_bar = J lambda, of the impulses."""
    multiplier, block = frame.multiplier, frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED and frame.tree.constraint_kind[block.source[k]] == JOINT_CONSTRAINT:
            r, w, o = 3 * block.source[k], block.weight[k], block.weight2[k]
            bar.block.impulse[k] = (
                felt_at(frame, r, w[0], o[0]),
                felt_at(frame, r + 1, w[1], o[1]),
                felt_at(frame, r + 2, w[2], o[2]),
            )
        else:
            a, b = block.body[2 * k], block.body[2 * k + 1]
            bar.block.impulse[k] = felt_by_rows(
                block.rows[2 * k], multiplier.m[a], block.rows[2 * k + 1], multiplier.m[b]
            )


@sweep
def felt_at(frame, r, weight, weight2):
    tree, multiplier = frame.tree, frame.multiplier
    d, d2 = tree.constraint_dof[r], tree.constraint_dof2[r]
    if d < 0:
        return zero(frame.params.world_dt[0])
    mu = multiplier.mu[d]
    mu2 = zero(mu)
    if d2 >= 0:
        mu2 = multiplier.mu[d2]
    return felt_by_joint(weight, mu, weight2, mu2)
