"""What the tests of networks and of contact wrenches would notice: one operator of their reverse slightly wrong. The plain reverse
is held against the compiled one, which test_grafts.py and test_contact_outputs.py hold against differences."""

import functools
import importlib

import numpy as np
import pytest
from test_contact_gradients import (
    OUTPUTS,
    WITHOUT_ARITHMETIC,
    Mutant,
    PlainStep,
    contact_case,
    differs,
    operators_below,
)
from test_grafts import TARGETS, arm, grafted, model_for, modes_of, states

import jointgrad as jg
from jointgrad.engine.kernels.stages.assembly import assembly_stage_adjoint
from jointgrad.engine.kernels.stages.contact import wrenches as wrench_stage
from jointgrad.engine.kernels.step import step, step_adjoint
from jointgrad.engine.run import plain
from jointgrad.model.grafts import ACTIVATIONS

TOLERANCE = 1e-6
# one of these changes numbers in the same way whichever it is: each mode and activation once
CASES = [(target, "residual", "tanh") for target in TARGETS]
CASES += [("joint.force", mode, "tanh") for mode in modes_of("joint.force")]
CASES += [("joint.force", "residual", activation) for activation in ACTIVATIONS]
REVERSES = (
    "grafts_adjoint", "grafted_forces_adjoint", "grafted_rates_adjoint", "points.point_grafts_adjoint",
    "points.grafted_springs_adjoint",
)  # fmt: skip


@functools.cache
def plain_steps() -> list:
    found = []
    for target, mode, activation in CASES:
        case = contact_case(grafted(model_for(target), target, mode, activation), *(x[:1] for x in states()))
        for name in OUTPUTS:  # the step's reverse sees the outputs of the state it starts from
            case.bars[name][1] = 0.0
        gradient = case.backward(case.rollout())
        found.append((PlainStep(case, 0), {name: bar[0].ravel() for name, bar in gradient.items()}))
    return found


def mutations(reverses) -> list[tuple[str, str]]:
    found = set().union(*(operators_below(kernel.fn, set()) for kernel in reverses))
    # the place of a point itself does not act where a network only sees it through one face of a formula: see `opposite`
    return sorted((m, n) for m, n in found if n not in WITHOUT_ARITHMETIC)


def graft_reverses() -> list:
    home = "jointgrad.engine.kernels.stages.grafts"
    places = [f"{home}.{name}".rpartition(".") for name in REVERSES]
    return [getattr(importlib.import_module(module), name) for module, _, name in places]


def seen(monkeypatch, module: str, name: str, is_wrong) -> None:
    """Every result of an operator that counts for something is noticed when it is a tenth too large."""
    home = importlib.import_module(module)
    operator, part, count, noticed = getattr(home, name), 0, 1, 0
    while part < count:
        mutant = Mutant(operator, part)
        monkeypatch.setattr(home, name, mutant)
        was_seen = is_wrong()
        assert was_seen or not mutant.counts_for_something, f"result {part}"
        count, part, noticed = mutant.count, part + 1, noticed + was_seen
    assert noticed


def test_plain_reverse_of_networks():
    """The comparison that the mutations below must fail."""
    for one, expected in plain_steps():
        assert not differs(one.gradient(), expected, 1e-8)


@pytest.mark.parametrize(("module", "name"), mutations(graft_reverses()), ids=lambda x: x.rpartition(".")[2])
def test_mutation_of_networks_is_seen(monkeypatch, module, name):
    def is_wrong():
        return any(differs(one.gradient(), expected, TOLERANCE) for one, expected in plain_steps())

    seen(monkeypatch, module, name, is_wrong)


# contact wrenches -------------------------------------------------------------------------------------------------------------

LOADS = ("contact.force", "contact.torque")
SPRING = jg.Spring(3e3, 2e3, 1.3, "brown", 0.8, 0.5)


class Wrenches:
    """One step whose loss sees the forces and torques of contact alone."""

    def __init__(self, law) -> None:
        self.model = arm(contact=law)
        rng = np.random.default_rng(5)
        self.q, self.qd = (x[0] for x in states())
        self.bars = {name: rng.normal(size=(2, self.model.n_links, 3)) for name in LOADS}
        motion = jg.rollout(self.model, jg.State(self.q, self.qd), steps=1, outputs=LOADS)
        found = motion.backward(bars=self.bars)
        self.expected = {"q": found.q, "qd": found.qd} | {n: np.ravel(x) for n, x in found.params.items()}
        self.z = z = plain.tables(self.model)
        z.state.q[:], z.state.qd[:] = self.q.tolist(), self.qd.tolist()
        z.call.wants_wrenches = z.call.wants_params = 1
        step(z)

    def gradient(self) -> dict[str, np.ndarray]:
        z = self.z
        for table in (z.params_bar, z.assembly_bar, z.next_bar):
            for rows in vars(table).values():
                if isinstance(rows, list):
                    rows[:] = [tuple(0.0 for _ in r) if isinstance(r, tuple) else 0.0 for r in rows]
        for field, name in zip(("force", "torque"), LOADS, strict=True):
            getattr(z.output_bar, field)[:] = [tuple(row) for row in self.bars[name][1].tolist()]
        step_adjoint(z, z.bar)
        assembly_stage_adjoint(z, z.bar)
        found = {"q": np.array(z.state_bar.q), "qd": np.array(z.state_bar.qd)}
        names = (name for name in self.expected if name not in found)
        return found | {name: np.array(getattr(z.params_bar, name.replace(".", "_", 1))).ravel() for name in names}


@functools.cache
def wrenches() -> list[Wrenches]:
    return [Wrenches(jg.Impulse(sweeps=10)), Wrenches(SPRING)]


def test_plain_reverse_of_wrenches():
    for one in wrenches():
        assert np.abs(one.expected["qd"]).max() > 1e-3
        assert not differs(one.gradient(), one.expected, 1e-8)


@pytest.mark.parametrize(
    ("module", "name"), mutations([wrench_stage.contact_wrenches_adjoint]), ids=lambda x: x.rpartition(".")[2]
)
def test_mutation_of_wrenches_is_seen(monkeypatch, module, name):
    seen(monkeypatch, module, name, lambda: any(differs(o.gradient(), o.expected, TOLERANCE) for o in wrenches()))
