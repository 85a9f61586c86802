"""Policies as ONNX, for programs that know nothing of us: observations in, actions out, their statistics inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ..model.arguments import writing
from .policy_file import EPSILON, FARTHEST, NORM_EPSILON, PlainPolicy

# opset 17 was the first with LayerNormalization; the version of the file that goes with it
OPSET, FILE_VERSION = 17, 8
# how far single precision may part two ways of adding up
EQUAL = 1e-5


def write_onnx(policy: PlainPolicy, path: Path) -> None:
    """Write a policy, after it was seen to do what ours does."""
    model = as_onnx(policy)
    check_equal(policy, model)
    with writing(path):
        onnx.save(model, path)


def as_onnx(policy: PlainPolicy) -> onnx.ModelProto:
    """The same function as a graph: `observation` (batch, n) to `action` (batch, nu), both in single precision."""
    w, task = policy.weights, policy.task
    graph = _Graph()
    scale = np.sqrt(w["statistics.variance"] + np.float32(EPSILON))
    x = graph.add("Sub", "observation", graph.constant("mean", w["statistics.mean"]))
    x = graph.add("Div", x, graph.constant("deviation", scale))
    bounds = [graph.constant(n, np.float32(v)) for n, v in (("lowest", -FARTHEST), ("highest", FARTHEST))]
    x = graph.add("Clip", x, *bounds)
    for k in range(policy.n_hidden):
        x = graph.add("Elu", graph.linear(x, w, 3 * k))
        names = (f"layers.{3 * k + 2}.weight", f"layers.{3 * k + 2}.bias")
        x = graph.add("LayerNormalization", x, *(graph.constant(n, w[n]) for n in names), epsilon=NORM_EPSILON)
    share = graph.add("Tanh", graph.linear(x, w, 3 * policy.n_hidden))
    half = np.float32(0.5) * (w["high"] - w["low"])
    x = graph.add("Mul", graph.add("Add", share, graph.constant("one", np.float32(1.0))), graph.constant("half", half))
    graph.add("Add", x, graph.constant("low", w["low"]), to="action")
    return graph.model(task.name, task.n_observations, task.model.nu)


def check_equal(policy: PlainPolicy, model: onnx.ModelProto, batch: int = 64) -> None:
    """The graph as ONNX's own reference computes it against our policy, also far from what it has seen."""
    w, rng = policy.weights, np.random.default_rng(0)
    size = (batch, policy.task.n_observations)
    seen = w["statistics.mean"] + 3.0 * np.sqrt(w["statistics.variance"]) * rng.standard_normal(size)
    (found,) = ReferenceEvaluator(model).run(None, {"observation": seen.astype(np.float32)})
    gap = np.abs(found - policy(seen)).max() / max(1.0, float(np.abs(w["high"] - w["low"]).max()))
    if not gap < EQUAL:
        raise ArithmeticError(
            f"the ONNX graph of the policy of {policy.task.name} is off by {gap:.1e}: nothing is written"
        )


class _Graph:
    """Nodes and constants, as they come."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, kind: str, *given: str, to: str = "", **attributes: Any) -> str:
        name = to or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, given, [name], **attributes))
        return name

    def constant(self, name: str, value: np.ndarray | np.float32) -> str:
        self.constants[name] = numpy_helper.from_array(np.asarray(value, np.float32), name)
        return name

    def linear(self, x: str, weights: Any, k: int) -> str:
        names = (f"layers.{k}.weight", f"layers.{k}.bias")
        return self.add("Gemm", x, *(self.constant(n, weights[n]) for n in names), transB=1)

    def model(self, name: str, n_seen: int, n_actions: int) -> onnx.ModelProto:
        ends = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", size])
            for n, size in (("observation", n_seen), ("action", n_actions))
        ]
        graph = helper.make_graph(self.nodes, name, ends[:1], ends[1:], list(self.constants.values()))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="jointgrad")
        made.ir_version = FILE_VERSION
        onnx.checker.check_model(made, full_check=True)
        return made
