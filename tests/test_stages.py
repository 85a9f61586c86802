"""Every stage keeps its contract: it writes what it says, and its reverse is the transpose of its derivative."""

import functools
from pathlib import Path

import numpy as np
import pytest
from worlds import kinds_in, tangled

from jointgrad.compiler.kernel import Kernel, Sweep
from jointgrad.engine.kernels import pipeline, runge_kutta, step
from jointgrad.engine.kernels.fields import FIELDS
from jointgrad.engine.kernels.workspace import BLOCK, NEXT, SCHEMA, TOUCH, WORK
from jointgrad.engine.run.runtime import address, worker
from jointgrad.model.pair_table import PAIR_KINDS

# worlds that between them have every joint kind, several trees, welded links, springs, drives, every pair of shapes
WORLDS = {"free": (3, "free", True, "matrix"), "fixed": (5, "fixed", False, "sums")}
LANES = 4


@functools.cache
def made(name):
    seed, base, cone, form = WORLDS[name]
    return tangled(seed, base, cone=cone, form=form)


@pytest.fixture(params=WORLDS)
def model(request):
    return made(request.param)


@pytest.fixture(params=pipeline.STAGES)
def stage(request):
    return request.param


def filled(model, parts):
    """A worker whose tables hold a real state, its controls and outside forces."""
    rng = np.random.default_rng(1)
    q, qd, u = (
        rng.normal(size=(LANES, model.nq)),
        rng.normal(size=(LANES, model.nv)),
        rng.normal(size=(1, LANES, model.nu)),
    )
    force = rng.normal(size=(LANES, model.n_links, 6))
    with worker(model, parts) as one:
        one.assembled_for = None
        one.take_params(model)
        one.set(
            first=0, last=LANES, batch=LANES, steps=1, q0=address(q), qd0=address(qd), u=address(u), force=address(force),
            force_step=0, q0_dot=0, qd0_dot=0, u_dot=0, force_dot=0, wants_params=1, has_springs=1, has_drag=1,
        )  # fmt: skip
        one.run("evaluation")
        one.library.attach(one.frame, "integration")()
        one.assembled_for = None
    return one


def run(one, name):
    one.library.attach(one.frame, name)()


def snapshot(one):
    return {f: one.frame.table(f).copy() for f in one.frame.rows if SCHEMA.is_pack(f) and not f.endswith(".all")}


def bar_of(field):
    table, name = field.split(".")
    bar = f"{table}_bar.{name}"
    return bar if bar in SCHEMA.slots else None


def test_forward_changes_exactly_what_it_writes(model, stage):
    one = filled(model, 1)
    writes = pipeline.STAGES[stage].WRITES
    for field in writes:
        one.frame.table(field)[:] = 7.25
    before = snapshot(one)
    run(one, stage)
    after = snapshot(one)
    changed = {f for f in before if not np.array_equal(before[f], after[f])}
    assert changed <= set(writes)
    # free bodies alone have factors, bodies that carry nothing no articulated inertia, the world no arm; sides are kept where a
    # bound is zero, whole impulses where a bounce is restrained; what the convex law alone writes has no rows, or is its own
    optional = {"work.factor", "work.IA", "block.at_root", "block.answer", "block.side", "block.whole", "block.sticks"}
    optional |= {f for f in writes if not one.frame.rows[f]} | {"block.composite", "block.excess", "touch.geometry"}
    assert set(writes) - changed <= optional


def test_every_field_of_the_workspace_has_one_writer():
    tables = {"work": WORK, "touch": TOUCH, "block": BLOCK, "next": {name: NEXT[name] for name in ("q", "qd", "more")}}
    written = [
        f
        for stage in (*pipeline.STAGES.values(), *pipeline.ON_REQUEST.values())
        for f in stage.WRITES
        if f.split(".")[0] in tables
    ]
    fields = [f"{table}.{field}" for table, fields in tables.items() for field in fields]
    assert sorted(written) == sorted(filter(SCHEMA.is_pack, fields))


def test_every_kind_of_pair_touches():
    """What the contracts below are tested on. Round shapes, meshes and terrains run through the same kernels, made from the same
    three forms; test_contact_gradients.py and test_convex.py try them."""
    others = {"cylinder_plane", "ellipsoid_plane", "mesh_plane", "convex", "terrain"}
    assert set.union(*(kinds_in(filled(made(name), 1)) for name in WORLDS)) == set(PAIR_KINDS) - others


def test_stages_read_inputs_or_what_is_written_above():
    known = set()
    for stage in pipeline.STAGES.values():
        for field in stage.READS:
            assert field.split(".")[0] in pipeline.INPUTS or field in known, field
        known |= set(stage.WRITES)


def stages_called(sweep):
    """In their order, with those that other sweeps call for it."""
    found = []
    for name in sweep.fn.__code__.co_names:
        value = sweep.fn.__globals__.get(name)
        if name.removesuffix("_adjoint") in pipeline.STAGES:
            found.append(name)
        elif isinstance(value, Sweep) and not isinstance(value, Kernel):
            found += stages_called(value)
    return found


def test_the_reverse_calls_the_stages_in_reverse_order():
    smooth = ["kinematics", "detection", "springs", "tendons", "forces", "articulated"]
    for forward, reverse, expected in (
        (step.step, step.step_adjoint, [*smooth, "contact", "integration"]),
        (runge_kutta.runge_kutta, runge_kutta.runge_kutta_adjoint, smooth),
    ):
        assert stages_called(forward) == expected
        back = [n for n in stages_called(reverse) if n.endswith("_adjoint") and n != "outputs_adjoint"]
        assert back == [f"{n}_adjoint" for n in reversed(expected)]


def test_every_field_has_unit_frame_and_rows():
    """Of the tables that stages fill, apart from those that files and pairs of shapes may extend."""
    fields = [
        f for f in SCHEMA.slots if f.split(".")[0] in ("assembly", "work", "block", "output") and SCHEMA.is_pack(f)
    ]
    assert len(fields) > 80 and not [f for f in fields if f not in FIELDS]
    assert all(all(field) for field in FIELDS.values())


def test_the_printed_pipeline_is_the_real_one():
    page = Path(__file__).parents[1] / "docs" / "pipeline.md"
    assert page.read_text() == pipeline.markdown()


# the dot-product identity ----------------------------------------------------------------------------------------------


def turned(delta, vectors):
    return np.cross(delta, vectors, axis=0)


def moved(pose, centre, delta):
    """Rate of change of poses (12, lanes) under small motions (6, lanes) about a centre (3, lanes)."""
    R, p = pose[:9].reshape(3, 3, -1), pose[9:]
    R_dot = np.stack([turned(delta[:3], R[:, j]) for j in range(3)], 1)
    return np.concatenate([R_dot.reshape(9, -1), delta[3:] + turned(delta[:3], p - centre)])


def motion_of(pose, centre, pose_dot):
    """The small motion that a rate of change of a pose amounts to."""
    R, R_dot = pose[:9].reshape(3, 3, -1), pose_dot[:9].reshape(3, 3, -1)
    turn = 0.5 * sum(np.cross(R[:, j], R_dot[:, j], axis=0) for j in range(3))
    return np.concatenate([turn, pose_dot[9:] - turned(turn, pose[9:] - centre)])


def centre_of(one, field, row):
    """About which point the cotangent of a pose is a force."""
    if field == "work.pose":
        tree = one_tree(one)
        return one.frame.table("work.pose")[tree["reference"][row], 9:, 0]
    if field == "touch.shape":
        return one.frame.table(field)[row, 9:, 0]
    return np.zeros((3, LANES))


def one_tree(one):
    return one.tree


POSES = ("work.pose", "assembly.frame_pose", "assembly.placement", "assembly.drag", "assembly.shape", "touch.shape")


def directions(rng, one, fields):
    """Random tangents of fields that have a cotangent; of a pose, a small motion. Arms move with their pose."""
    found = {}
    for field in fields:
        if bar_of(field) is None:
            continue
        table = one.frame.table(field)
        if field in POSES:
            deltas = rng.normal(size=(table.shape[0], 6, LANES))
            if field == "work.pose":
                deltas[-1] = 0.0  # the world does not move
            for row in range(table.shape[0]):
                table[row, :, 1] = moved(table[row, :, 0], centre_of(one, field, row), deltas[row])
                if field == "work.pose" and row < table.shape[0] - 1:
                    arm = one.frame.table("work.arm")
                    arm[row, :, 1] = deltas[row, 3:] + turned(deltas[row, :3], arm[row, :, 0])
            found[field] = deltas
        else:
            found[field] = rng.normal(size=table[:, :, 0].shape)
            table[:, :, 1] = found[field]
    return found


def tangents_of(one, field):
    table = one.frame.table(field)
    if field not in POSES:
        return table[:, :, 1]
    rows = [motion_of(t[:, 0], centre_of(one, field, k), t[:, 1]) for k, t in enumerate(table)]
    return np.stack(rows)


# contact hands what factors and velocities receive on to what they were made of, so that the three keep one contract
TOGETHER = {"contact": ("kinematics", "articulated", "contact")}
# the world itself does not move, and nothing pushes it
OF_BODIES = ("work.pose", "work.v", "work.c", "work.f", "work.touch", "assembly.frame_pose")


def silenced(one, field, weights):
    """Without what has no cotangent: rows that nothing wrote, the world, mass that does not move."""
    keep = rows_in_use(one, field, len(weights))
    weights[keep:] = 0.0
    if field == "assembly.com":
        tree = one.model.topology.tree
        weights[[j for j, body in enumerate(tree["link_body"]) if body == tree["n_bodies"]]] = 0.0
    return weights


def rows_in_use(one, field, rows):
    if field in ("touch.point", "touch.normal", "touch.gap"):
        return int(one.frame.integers[SCHEMA.slots["touch.n"]])
    return rows - 1 if field in OF_BODIES else rows


def test_reverse_is_the_transpose_of_the_derivative(model, stage):
    rng = np.random.default_rng(2)
    stages = TOGETHER.get(stage, (stage,))
    writes = [f for name in stages for f in pipeline.STAGES[name].WRITES]
    reads = sorted({f for name in stages for f in pipeline.STAGES[name].READS} - set(writes))
    forward, reverse = filled(model, 2), filled(model, 1)
    forward.tree = reverse.tree = model.topology.tree
    dots = directions(rng, forward, reads)
    for name in stages:
        run(forward, name)
    weights, left = {}, 0.0
    for field in snapshot(reverse):
        if "_bar." in field:
            reverse.frame.table(field)[:] = 0.0
    for field in writes:
        bar = bar_of(field)
        is_on_the_way = stage in TOGETHER and field not in ("work.qdd", "work.qd_jump")
        if bar is None or field == "work.arm" or is_on_the_way:
            continue
        weights[field] = silenced(forward, field, rng.normal(size=reverse.frame.table(bar)[:, :, 0].shape))
        reverse.frame.table(bar)[:, :, 0] = weights[field]
        left += (weights[field] * tangents_of(forward, field)).sum((0, 1))
    assert np.abs(left).max() > 0
    before = snapshot(reverse)
    for name in reversed(stages):
        run(reverse, f"{name}_adjoint")
    after = snapshot(reverse)
    terms = [after[bar_of(f)][:, :, 0] * d for f, d in dots.items() if bar_of(f) not in map(bar_of, weights)]
    right, size = sum(t.sum((0, 1)) for t in terms), sum(np.abs(t).sum((0, 1)) for t in terms)
    # contact rows that hardly move have impulses 1e5 times larger than what comes of them: a lane with such rows keeps fewer digits
    error = np.abs(right - left) / (1.0 + size)
    assert error.max() < (1e-9 if stage == "contact" else 1e-10) and np.sort(error)[1] < 1e-11, (right, left)
    changed = {f for f in before if not np.array_equal(before[f], after[f])}
    allowed = {bar_of(f) for f in (*reads, *writes)}
    assert {f for f in changed if not f.startswith(("multiplier.", "block_bar."))} <= allowed
