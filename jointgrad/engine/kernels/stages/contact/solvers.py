"""Solvers of the contact problem: who finds the impulses of a step, goes back through that, and says how near another outcome was.

rows.py and constraints.py have written the rows of every block before a solver is asked, and their reverses go on from what it
leaves, the same for all of them. A solver is a line in SOLVERS, in the order of model.laws.SOLVERS:

solve(frame) reads the blocks (rows, b, closing, approach, give, low, high, friction, active, and effort, at_root, answer unless
    paths.py leaves these out for it) and writes work.qd_jump, block.impulse and block.sticks (clamping.hand_over), block.unsettled,
    and what it keeps for itself;
reverse(frame, bar) reads bar.work.qd_jump, and bar.block.wrench where forces are outputs. It leaves the cotangents of b, give,
    friction, low and high, in multiplier.m and mu those of J^T x, in W and W_root what else J receives; adds to inertias and axes;
record(frame, record) adds margins and signature of its choices, the impulses and their last change to a record (records.py).
"""

from typing import NamedTuple

from .....compiler.kernel import Sweep, choice
from . import gauss_seidel, implicit, matrix_free


class Solver(NamedTuple):
    solve: Sweep
    reverse: Sweep
    record: Sweep


SOLVERS = (
    Solver(gauss_seidel.solve, gauss_seidel.solve_adjoint, gauss_seidel.record_sweeps),
    Solver(matrix_free.solve, matrix_free.solve_adjoint, matrix_free.record_sweeps),
    Solver(implicit.implicit, implicit.solve_adjoint, implicit.record_solution),
)

solve = choice("solve", "tree.solver", [s.solve for s in SOLVERS])
solve_adjoint = choice("solve_adjoint", "tree.solver", [s.reverse for s in SOLVERS])
record_solution = choice("record_solution", "tree.solver", [s.record for s in SOLVERS])
