"""Contact as flat lists, and as the integers of a Topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bodies import in_one_row
from .constraint_rows import Block, block_arrays
from .contact_pairs import PairRules, parameters_of, sharing_name
from .contact_shapes import ContactShape
from .errors import ModelError, UnsupportedWarning, warn_caller
from .laws import HAVE_ROWS, ROWS, SOLVERS, TIE_COMPLIANCE, Implicit, Impulse, Law
from .pair_table import PAIR_KINDS, POINTS, pair_kind
from .trees import chains

# a world with room for more blocks of rows per tree is solved by running sums (twice as many where trees may touch each other,
# which few do at a time): not by what touches, or the bits of an environment would depend on its neighbours
MATRIX_BLOCKS = 12
# of a world whose contacts are solved in joint space, by one matrix
MOST_DOFS = 1200


@dataclass
class Contacts:
    """Shapes, pairs and ties as flat lists."""

    shapes: list[ContactShape] = field(default_factory=list)
    pairs: list[tuple[int, int, int, int, int, bool]] = field(default_factory=list)  # kind, a, b, row, law, spins
    rows: list[dict[str, float]] = field(default_factory=list)
    row_names: list[str] = field(default_factory=list)
    ties: list[Block] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)  # pairs left out for that
    laws: list[Impulse | Implicit] = field(default_factory=list)  # of single pairs, those with rows
    tie_compliance: float = TIE_COMPLIANCE


def list_pairs(contacts: Contacts, tree: dict[str, Any], rules: PairRules, pairs: np.ndarray) -> list[str]:
    """Fill in pairs and their rows, runs of one kind between two trees together; names of pairs that no rule matched."""
    shapes, world = contacts.shapes, tree["n_trees"]
    rows: dict[Any, int] = {}
    listed = []
    for i, j in pairs.tolist():
        # the later kind first, as the operators take them
        one, two = (i, j) if shapes[i].kind > shapes[j].kind else (j, i)
        kind = pair_kind(shapes[one].kind, shapes[two].kind)
        if kind is None:
            continue
        law, options, number, is_apart = rules.of(i, j, shapes, tree)
        if is_apart:
            contacts.overlapping.append(f'"{shapes[i].name}" and "{shapes[j].name}"')
        if law is None:
            continue
        values, spins = parameters_of(shapes[one], shapes[two], law, options)
        name = sharing_name(shapes[one], shapes[two], tree, number)
        row = rows.setdefault((name, number, tuple(values.values()), law.code), len(rows))
        if row == len(contacts.rows):
            contacts.rows.append(values)
            contacts.row_names.append(name)
        s, t = sorted(tree["body_tree"][shapes[k].body] for k in (one, two))
        listed.append(((t == world, s == t, s, t, kind), (kind, one, two, row, law.code, spins)))
    contacts.pairs = [pair for _, pair in sorted(listed, key=lambda entry: entry[0])]
    contacts.laws = [r.contact for r in rules.rules if isinstance(r.contact, ROWS)]
    return [f'"{r.first}" and "{r.second}"' for k, r in enumerate(rules.rules) if k not in rules.used]


def _solver(law: Law | None, others: list[Impulse | Implicit]) -> Impulse | Implicit:
    """A law with the solver of the world. All rows of a world are one problem, so that all laws with rows must agree on it."""
    laws = ([law] if isinstance(law, ROWS) else []) + others
    if len({type(one) for one in laws}) > 1:
        raise ModelError(
            "Impulse and Implicit contacts in one world: all contacts are solved together, so give them the same law"
        )
    asked = {one.solver for one in laws}
    if len(asked) > 1:
        raise ModelError(
            f"laws of one world ask for different ones of {laws[0].SOLVER}: {', '.join(map(str, sorted(asked)))}; "
            "all contacts are solved together, so give them the same"
        )
    return laws[0] if laws else Impulse()


def _solver_arrays(law: Impulse | Implicit, blocks: int, tree: dict[str, Any]) -> dict[str, Any]:
    if isinstance(law, Implicit):
        if tree["n_dofs"] > MOST_DOFS:
            raise ModelError(
                f"the world has {tree['n_dofs']} degrees of freedom; Implicit keeps one matrix of them, and has room for "
                f"{MOST_DOFS}: use contact=jg.Impulse(), or several worlds"
            )
        return {
            **chains(tree),
            "is_implicit": 1, "iterations": law.iterations, "is_level": int(law.is_level), "sweeps": 0, "is_cone": 1,
            "solver": SOLVERS.index("implicit"), "most_couplings": blocks,
        }  # fmt: skip
    form = law.form
    if form == "auto":
        form = "matrix" if blocks <= MATRIX_BLOCKS * (2 * tree["n_trees"] - 1) else "sums"
    return {
        "chain_first": [0], "chain": [],
        "is_implicit": 0, "iterations": 0, "is_level": 0, "sweeps": law.sweeps, "is_cone": int(law.cone),
        "solver": SOLVERS.index(form), "most_couplings": min(blocks, 128) * blocks if form == "matrix" else blocks,
    }  # fmt: skip


def contact_arrays(contacts: Contacts, tree: dict[str, Any], law: Law | None, most: int | None) -> dict[str, Any]:
    """The integers of shapes, pairs and ties."""
    pairs = contacts.pairs
    runs: list[tuple[int, int, int, int]] = []
    for number, (kind, a, b, *_) in enumerate(pairs):
        trees = [tree["body_tree"][contacts.shapes[k].body] for k in (a, b)]
        if not runs or runs[-1][:3] != (kind, *trees):
            runs.append((kind, *trees, number))
    touches = sum(POINTS[PAIR_KINDS[kind]] for kind, *_ in pairs)
    blocks = sum(POINTS[PAIR_KINDS[kind]] * (1 + spins) for kind, _, _, _, code, spins in pairs if code in HAVE_ROWS)
    room = most if most is not None else 128 + 8 * tree["n_trees"]
    touches = min(touches, room)
    # ties are always there, and a point that resists turning needs two blocks
    blocks = len(contacts.ties) + min(blocks, room * (1 + any(spins for *_, spins in pairs)))
    has_trees = any(tree["n_trees"] not in (s, t) and s != t for _, s, t, _ in runs)
    return {
        "n_shapes": len(contacts.shapes), "n_runs": len(runs), "n_pairs": len(pairs), "n_pair_rows": len(contacts.rows),
        "shape_frame": [s.frame for s in contacts.shapes], "shape_body": [s.body for s in contacts.shapes],
        "shape_kind": [s.kind for s in contacts.shapes], **in_one_row(contacts.shapes),
        "run_kind": [r[0] for r in runs], "run_tree_a": [r[1] for r in runs], "run_tree_b": [r[2] for r in runs],
        "run_first": [*(r[3] for r in runs), len(pairs)], "has_tree_pairs": int(has_trees),
        "pair_kind": [p[0] for p in pairs], "pair_a": [p[1] for p in pairs], "pair_b": [p[2] for p in pairs],
        "pair_row": [p[3] for p in pairs], "pair_law": [p[4] for p in pairs],
        "pair_has_rows": [int(p[4] in HAVE_ROWS) for p in pairs], "pair_spins": [int(p[5]) for p in pairs],
        "n_constraints": len(contacts.ties), **block_arrays(contacts.ties),
        "has_impulses": int(blocks > 0), "has_soft_contact": int(any(p[4] not in HAVE_ROWS for p in pairs)),
        "most_touches": touches, "most_blocks": blocks, "has_tangents": 0,
        **_solver_arrays(_solver(law, contacts.laws), blocks, tree),
    }  # fmt: skip


def warn_of_overlaps(pairs: list[str]) -> None:
    if pairs:
        named = "; ".join(pairs[:4]) + (f"; {len(pairs) - 4} more" if len(pairs) > 4 else "")
        warn_caller(
            f"these pairs of one robot overlap where it starts, and do not touch each other: {named} "
            "(World.pair with their names makes them touch)",
            UnsupportedWarning,
        )
