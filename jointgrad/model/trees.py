"""Which bodies of a world hang together, and the ways from them to their roots; all in time that grows with the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import FREE
from .budget import excess
from .errors import ModelError


def tree_arrays(tree: dict[str, Any]) -> dict[str, Any]:
    """Which bodies hang together, and the paths of joints to each."""
    n, parent = tree["n_bodies"], tree["parent"]
    bodies: list[list[int]] = []
    body_tree: list[int] = []
    for b in range(n):
        if parent[b] == n:
            bodies.append([])
        body_tree.append(len(bodies) - 1 if parent[b] == n else body_tree[parent[b]])
        bodies[body_tree[b]].append(b)
    n_trees = len(bodies)
    # trees in the order of their degrees of freedom, which are neighbours
    order = sorted(range(n_trees), key=lambda t: min(tree["dof"][b] for b in bodies[t]))
    rank = {t: k for k, t in enumerate(order)}
    bodies = [bodies[t] for t in order]
    firsts = [min(tree["dof"][b] for b in group) for group in bodies]
    counts = [sum(tree["n_dof"][b] for b in group) for group in bodies]
    return {
        "n_trees": n_trees, "most_dofs": max(counts, default=0),
        "body_tree": [*(rank[t] for t in body_tree), n_trees],
        "tree_root": [group[0] if tree["kind"][group[0]] == FREE else -1 for group in bodies],
        "tree_dof": [*firsts, tree["n_dofs"]],
        "tree_first": np.cumsum([0, *map(len, bodies)]).tolist(), "tree_body": [b for group in bodies for b in group],
        **_paths(tree),
    }  # fmt: skip


def _paths(tree: dict[str, Any]) -> dict[str, Any]:
    """Degrees of freedom from the root to each body. What leads to a body is the beginning of what leads to any body that it
    carries, so that only paths to the ends of the tree are written down: a chain of n has n entries."""
    n, parent = tree["n_bodies"], tree["parent"]
    own = [
        [] if tree["kind"][b] == FREE else [*range(tree["dof"][b], tree["dof"][b] + tree["n_dof"][b])] for b in range(n)
    ]
    length, place, end = [0] * (n + 1), [0] * tree["n_dofs"], list(range(n + 1))
    for b in range(n):
        before = length[parent[b]] if parent[b] < n else 0
        length[b] = before + len(own[b])
        for k, d in enumerate(own[b]):
            place[d] = before + k
    for b in reversed(range(n)):
        if parent[b] < n:
            end[parent[b]] = end[b]
    ends = sorted(set(end[:n]))
    if why := excess("path", sum(length[b] for b in ends)):
        raise ModelError(f"the world has {why}")
    first: list[int] = [0] * (n + 1)
    path: list[int] = []
    for b in ends:
        first[b] = len(path)
        path += _way(b, parent, own)
    return {
        "most_path": max(length), "path": path, "path_first": [first[e] for e in end[:n]] + [len(path)],
        "path_length": length, "place": place,
    }  # fmt: skip


def chains(tree: dict[str, Any]) -> dict[str, Any]:
    """Of every degree of freedom, those before it between it and its root, a free root's own included."""
    n = tree["n_bodies"]
    above: list[list[int]] = [[] for _ in range(tree["n_dofs"])]
    whole: list[list[int]] = []  # of each body, with its own
    for b in range(n):
        whole.append(list(whole[tree["parent"][b]]) if tree["parent"][b] < n else [])
        for d in range(tree["dof"][b], tree["dof"][b] + tree["n_dof"][b]):
            above[d] = list(whole[b])
            whole[b].append(d)
    return {"chain_first": np.cumsum([0, *map(len, above)]).tolist(), "chain": [i for one in above for i in one]}


def _way(b: int, parent: Sequence[int], own: list[list[int]]) -> list[int]:
    steps = []
    while b < len(own):
        steps.append(own[b])
        b = parent[b]
    return [d for dofs in reversed(steps) for d in dofs]


def visits(parent: Sequence[int]) -> tuple[list[int], list[int]]:
    """When each body is entered and left on a walk through all trees: b carries c where enter[b] <= enter[c] < leave[b].

    Parents come before those they carry; the parent of a root is len(parent)."""
    n = len(parent)
    size = [1] * (n + 1)
    for b in reversed(range(n)):
        size[parent[b]] += size[b]
    enter, free = [0] * n, [0] * (n + 1)
    for b in range(n):
        enter[b] = free[parent[b]]
        free[parent[b]] += size[b]
        free[b] = enter[b] + 1
    return enter, [e + s for e, s in zip(enter, size, strict=False)]
