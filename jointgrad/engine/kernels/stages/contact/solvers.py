"""Solvers of the contact problem: who finds the impulses of a step, goes back through that, and says how near another outcome was.

rows.py and constraints.py have written the rows of every block before a solver is asked, and after it energy.py and response.py
go on with what it found, the same for all of them. A solver is a line in SOLVERS, in the order of model.laws.SOLVERS:

solve(frame) reads the blocks (rows, effort, at_root, answer, b, give, low, high, friction, active) and writes block.impulse,
    block.sticks and block.unsettled, and what it keeps for itself;
reverse(frame, bar) uses up bar.block.impulse. It leaves the cotangents of b, give, friction, low and high, and in W and W_root the
    answers mixed by A_bar + A_bar^T (response.mixtures);
record(frame, record) adds margins and signature of its choices, the impulses and their last change to a record (records.py).
"""

from typing import NamedTuple

from .....compiler.kernel import Sweep, choice
from . import gauss_seidel, matrix_free


class Solver(NamedTuple):
    solve: Sweep
    reverse: Sweep
    record: Sweep


SOLVERS = (
    Solver(gauss_seidel.solve, gauss_seidel.solve_adjoint, gauss_seidel.record_sweeps),
    Solver(matrix_free.solve, matrix_free.matrix_free_adjoint, matrix_free.record_sweeps),
)

solve = choice("solve", "tree.solver", [s.solve for s in SOLVERS])
solve_adjoint = choice("solve_adjoint", "tree.solver", [s.reverse for s in SOLVERS])
record_solution = choice("record_solution", "tree.solver", [s.record for s in SOLVERS])
