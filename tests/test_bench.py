"""`jointgrad bench`: the protocol with made-up peers, the small versions of suites with ourselves and MuJoCo, fits and pages."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import jointgrad as jg
from jointgrad import cli
from jointgrad.bench import fit, gradients, laikago, page, peers, printed, problems, run
from jointgrad.bench.catalogue import SUITES
from jointgrad.bench.peers import Peer
from jointgrad.bench.results import Results, Verdict, duration, load_results, origin, size, times, troubles, where
from jointgrad.bench.suite import Plan

CONTESTANTS = Path(peers.__file__).parent / "contestants"
TASK = {"suite": "laikago", "scene": ".", "cores": 1, "seconds": 5, "repeats": 3}


# the protocol ---------------------------------------------------------------------------------------------------------


def made_up(folder, name, script):
    """A peer that runs in our own interpreter."""
    (folder / f"{name}.py").write_text(script)
    return Peer(name, name.capitalize(), f"{name}.py", needs=("json",))


WORKS = f"""
import sys
print("a library that talks")
sys.path.insert(0, {str(CONTESTANTS)!r})
import protocol

def measure(task):
    print("another one")
    (found,) = task.timed(lambda: sum(range(1000)))
    task.say(status="measured", what="forward", best_us=1e6 * found["best"], repeats=found["repeats"], cores=task.cores)

protocol.play({{"laikago": measure}})
"""
CRASHES = """
import json, os, sys
json.load(sys.stdin)
print(json.dumps({"status": "measured", "what": "forward", "best_us": 1.0}), flush=True)
{end}
"""


def answers(folder, name, script, seconds=20.0, task=TASK):
    return list(peers.run(made_up(folder, name, script), task, seconds, folder))


def test_a_peer_answers_in_json_whatever_its_libraries_print(tmp_path):
    (found,) = answers(tmp_path, "works", WORKS)
    assert found["status"] == "measured" and found["title"] == "Works" and found["best_us"] > 0
    assert found["repeats"] == 3 and found["cores"] == 1


def test_a_suite_without_the_peer_is_said(tmp_path):
    (found,) = answers(tmp_path, "works", WORKS, task=TASK | {"suite": "robots"})
    assert found["status"] == "not offered" and "robots" in found["reason"]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise ValueError('no such joint')", "ValueError: no such joint"),
        ("os.abort()", "signal 6"),
        ("import time; time.sleep(60)", "stopped after 0 minutes"),
    ],
    ids=["error", "crash", "too long"],
)
def test_a_peer_that_breaks_keeps_its_results_and_gives_the_reason(tmp_path, end, reason):
    measured, failed = answers(tmp_path, "breaks", CRASHES.replace("{end}", end), seconds=3.0)
    assert measured["best_us"] == 1.0 and failed["status"] == "failed" and reason in failed["reason"]
    table = troubles([measured | {"check": ""}, failed])
    assert table is not None and len(table.rows) == 1 and reason in table.rows[0][2]


def test_a_peer_that_will_not_install_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("JOINTGRAD_PEERS", str(tmp_path))
    monkeypatch.setattr(peers, "_called", lambda command: "would not install: no matching distribution")
    peer = Peer("ghost", "Ghost", "in_ghost.py", packages=("ghost==1.0",))
    assert "not installed" in peers.missing(peer)
    said = []
    assert peers.install(peer, said.append) == "would not install: no matching distribution"
    assert "ghost==1.0" in said[0]
    (found,) = peers.run(peer, TASK, 1.0)
    assert found["status"] == "absent" and "no matching distribution" in found["reason"]


def test_peers_are_pinned_and_have_their_scripts():
    known = peers.load_peers()
    for peer in known.values():
        assert (CONTESTANTS / peer.script).exists(), peer.name
        for package in peer.packages:
            assert "==" in package or package == "numpy<2", package
        assert peer.packages or peer.is_ours
    assert "torch==2.13.0" in peers.CONSTRAINTS
    with pytest.raises(jg.InputError, match='"bullet"; the names are ours'):
        run.chosen_peers(["bullet"])


def test_peers_do_not_see_our_paths(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    known = peers.load_peers()
    assert "PYTHONPATH" not in peers.environment(known["nimble"])
    assert peers.environment(known["ours"])["PYTHONPATH"] == str(Path(jg.__file__).parents[1])


# figures --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_of_growth(power):
    sizes = [1, 2, 5, 10, 100]
    assert abs(fit.exponent(sizes, [3.0 * n**power for n in sizes]) - power) < 1e-12


def test_the_cost_of_checkpoints():
    """Counted step by step, as the paper's supplement tells it."""
    steps, interval, forward, backward = 100, 5, 0.2, 1.1
    total = 0.0
    for _ in range(steps // interval):
        for i in range(interval):
            total += (i + 1) * forward + backward  # resumed from the checkpoint, then taken back
    assert abs(fit.backward_time(interval, forward, backward) - total / steps) < 1e-12
    assert fit.backward_time(1, forward, backward) == forward + backward
    assert fit.peak_memory(5, 100, 8.0, 50.0) == 20 * 8.0 + 50.0


def test_units():
    assert [duration(x) for x in (0.5, 12.3, 4567.0, 2e6)] == ["0.5 µs", "12.3 µs", "4.57 ms", "2 s"]
    assert [size(x) for x in (0, 999, 1.5e6)] == ["0 B", "999 B", "1.5 MB"]
    assert times(1.234) == "1.2x" and times(1234.5) == "1,234x"


def test_printed_figures_say_that_they_are():
    records = printed.laikago_records()
    assert all(r["status"] == "printed" and "printed" in r["title"] and "not measured" in r["note"] for r in records)
    (ours,) = where(records, peer="printed Qiao 2021", what="backward", steps=5000)
    assert ours["best_us"] == 1200.0 and ours["memory_bytes"] == 5e6
    assert not where(records, peer="printed ADF", what="backward") and not where(
        records, peer="printed PyTorch", steps=5000
    )


def record(peer, what, us, **more):
    told = {"peer": peer, "title": peer, "status": "measured", "what": what, "steps": 1000, "batch": 1, "cores": 1}
    return told | {"best_us": us, "check": "stands", "ok": True, "note": "", "memory_bytes": 4e5} | more


def test_ratios_are_of_the_same_batch_and_of_the_same_physics():
    records = [
        record("ours", "forward", 8.0), record("ours", "forward", 2.0, batch=256), record("ours_air", "forward", 4.0),
        record("mujoco", "forward", 12.0), record("mujoco", "forward", 10.0, batch=256), record("pinocchio", "forward", 16.0),
        record("slow", "forward", 400.0, steps=2), record("wrong", "forward", 1.0, ok=False),
    ]  # fmt: skip
    found = {v.words: v.ratio for v in laikago.verdicts(records)}
    assert found["Laikago, forward, beside mujoco"] == 1.5
    assert found["Laikago, forward, beside mujoco, batch 256"] == 5.0
    assert found["Laikago, forward, beside pinocchio"] == 4.0  # in the air, beside ours in the air
    assert found["Laikago, forward, beside slow"] == 50.0  # time per step, from as many as it did
    assert not any("wrong" in words for words in found)
    table = troubles(records)
    assert table is not None and table.rows == [("wrong", "check failed", "stands")]


def test_who_is_behind_comes_first():
    text = page.standing([Verdict("forward beside A", 3.0), Verdict("memory beside B", 0.5), Verdict("C", 1.01)])
    assert text.index("Where we are behind") < text.index("memory beside B") < text.index("Level")
    assert "Ahead in 1 of 3" in text
    assert "Nowhere" in page.standing([Verdict("forward beside A", 3.0)])


# problems with known derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [p.name for p in problems.all_problems() if p.name != "bounce"])
def test_the_closed_forms_are_those_of_our_impulses(name):
    """Differences of our own motion, which knows nothing of the closed form."""
    problem = next(p for p in problems.all_problems() if p.name == name)
    model = problem.bouncing_world().compile()
    joints = [n for n in model.joint_names if n in problem.start]

    def outputs(kind=None, joint=None, offset=0.0):
        state, u = model.initial_state(), dict(problem.controls)
        if name == "floating base":
            state.q[2] = problems.RADIUS
        values = {k: list(v) for k, v in problem.start.items()}
        if kind in ("q", "qd"):
            values[joint][("q", "qd").index(kind)] += offset
        elif kind == "u":
            u[joint] += offset
        state.q[-len(joints) :], state.qd[-len(joints) :] = zip(*(values[n] for n in joints), strict=True)
        given = np.tile(list(u.values()), (problem.steps, 1)) if u else None
        last = jg.rollout(model, state, given, steps=problem.steps).last
        return np.array([(last.q if k == "q" else last.qd)[joints.index(n) - len(joints)] for k, n in problem.outputs])

    found = [(outputs(k, n, 1e-6) - outputs(k, n, -1e-6)) / 2e-6 for k, n in problem.inputs]
    expected = np.array(problem.expected)
    assert np.abs(np.array(found).T - expected).max() < 0.01 * np.abs(expected).max()


def test_the_bounce_by_hand():
    """At speed v from height h: down for h / v, then up for the rest of the time."""
    problem = problems.bounce("z")
    (height, speed), seconds = problem.start["ball_z"], problem.seconds

    def last(h, v):
        return -v * (seconds - h / -v)

    slopes = [(last(height + 1e-6, speed) - last(height - 1e-6, speed)) / 2e-6]
    slopes += [(last(height, speed + 1e-6) - last(height, speed - 1e-6)) / 2e-6]
    assert np.allclose(slopes, problem.expected[0], atol=1e-6)


# whole runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """All suites but the gradients', in their small versions, with ourselves and MuJoCo."""
    pytest.importorskip("mujoco", reason="the extra [bench] is not installed")
    out = tmp_path_factory.mktemp("bench")
    console = Console(file=io.StringIO(), width=200)
    code = run.run(("laikago", "robots", "checkpoint", "correctness"), True, out, ("mujoco",), console)
    return out, code, console.file.getvalue()


@pytest.mark.parametrize("name", ["laikago", "robots", "checkpoint", "correctness"])
def test_a_quick_run_leaves_its_files(quick, name):
    out, code, shown = quick
    assert code == 0 and str(out) in shown.replace("\n", "")
    results = load_results(out / name)
    assert results.is_complete and results.origin["machine"]["cores"] and results.origin["versions"]["jointgrad"]
    assert "command" in (out / name / "results.csv").read_text().splitlines()[0]
    assert (out / name / f"{name}.png").stat().st_size > 5000
    ours = where(results.records, peer="ours", status="measured")
    assert ours and all(r["ok"] for r in ours)
    assert not [r for r in results.records if r["status"] in ("failed", "absent")]


def test_mujoco_stands_beside_us(quick):
    records = load_results(quick[0] / "laikago").records
    for what in ("forward", "backward"):
        (found,) = where(records, peer="mujoco", what=what, steps=100, batch=1, cores=1)
        assert found["ok"] and "4 contacts" in found["check"], found


def test_checkpoints_give_the_same_bits(quick):
    records = load_results(quick[0] / "checkpoint").records
    assert {r["way"] for r in records} == {"stored", "resumed", "binomial"} and all(r["ok"] for r in records)


def test_our_answers_are_right_but_for_the_bounce(quick):
    records = where(load_results(quick[0] / "correctness").records, status="measured")
    wrong = {r["problem"] for r in where(records, peer="ours") if r["error"] > 0.02}
    assert wrong == {"bounce"}
    assert all(
        r["error"] < 0.02 for r in where(records, peer="ours_named")
    )  # by the meaning that the certificate names
    assert all(r["error"] < 0.03 for r in where(records, peer="ours_springs"))
    assert all(r["own_error"] < 1e-4 for r in records if r["peer"] in ("ours", "ours_springs"))


def test_the_page_is_made_from_the_files(quick, tmp_path):
    text = page.write_page(quick[0], tmp_path / "docs" / "benchmarks.md").read_text()
    assert text.index("## Where we are behind") < text.index("## laikago") < text.index("## How it is measured")
    assert "correctness, bounce, beside MuJoCo" not in text.split("## laikago")[0]  # by the meaning that is named
    for name in ("laikago", "robots", "checkpoint", "correctness"):
        assert f"pictures/{name}.png" in text and (tmp_path / "docs" / "pictures" / f"{name}.png").exists()
    with pytest.raises(jg.InputError, match="no results"):
        page.write_page(tmp_path / "nothing", tmp_path / "page.md")


def test_interrupted_it_keeps_what_was_measured(tmp_path, monkeypatch):
    def interrupted(peer, task, seconds):
        if peer.name == "mujoco":
            raise KeyboardInterrupt
        yield record("ours", "forward", 8.0)

    monkeypatch.setattr(peers, "run", interrupted)
    console = Console(file=io.StringIO(), width=200)
    assert run.run(("laikago",), True, tmp_path, ("mujoco",), console) == 130
    said = json.loads((tmp_path / "laikago" / "results.json").read_text())
    assert not said["complete"] and len(where(said["records"], peer="ours")) == 1
    assert "Interrupted" in console.file.getvalue()


def test_the_command_line(capsys, tmp_path):
    assert cli.main(["bench"]) == 2
    assert "laikago, robots, checkpoint, gradients, correctness or all" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*SUITES, "--quick", "--peers", "--install", "--page"))


def test_results_come_back_as_they_were(tmp_path):
    results = Results("laikago", [record("ours", "forward", 8.0)], origin(), True)
    results.save(tmp_path)
    assert load_results(tmp_path) == results and sys.version.split()[0] == results.origin["versions"]["python"]


def test_memory_of_a_copy_is_that_of_its_arrays():
    """Again and again the same, in a process of its own as contestants have: copies of this large one change at random."""
    program = (
        "import json, numpy as np; from protocol import memory_alone\n"
        "print(json.dumps([memory_alone(lambda n=n: np.ones(n), repeats=3) for n in (10**5, 10**6)]))\n"
        "memory_alone(lambda: 1 / 0)"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=CONTESTANTS, capture_output=True, text=True)
    small, large = json.loads(found.stdout)
    assert abs(large[0] - small[0] - 8 * 9 * 10**5) < 2e5
    assert max(small[1], large[1]) < 2e5
    assert found.returncode != 0 and "did not come to its end" in found.stderr


def test_the_network_is_not_called_our_physics():
    """It has none: PyTorch and JAX are themselves there."""
    rows = [
        {"peer": peer, "title": title, "workload": workload, "method": method, "status": "measured", "best_us": 1.0, "check": ""}
        for peer, title, method in (("ours", "jointgrad", "exact"), ("plain_torch", "our physics in PyTorch", "autodiff"))
        for workload in ("network", "double pendulum")
    ]  # fmt: skip
    (table,) = gradients.tables(rows)
    names = {(row[0], row[1]) for row in table.rows}
    assert (gradients.WORKLOADS["network"], "PyTorch, autograd") in names
    assert (gradients.WORKLOADS["double pendulum"], "our physics in PyTorch") in names
    assert not any("physics" in name for workload, name in names if workload == gradients.WORKLOADS["network"])


def test_everyone_is_in_the_tables_or_says_why():
    """MJX and Genesis stand; all who have gradients are asked for known ones, and no job may take for ever."""
    plan = Plan(False, Path("."))
    asked = {name: {job.peer for job in suite.jobs(plan)} for name, suite in SUITES.items()}
    assert {"mjx", "genesis", "newton"} <= asked["laikago"]
    assert {"mjx", "genesis", "newton", "plain_torch", "plain_jax"} <= asked["correctness"]
    for suite in SUITES.values():
        for job in suite.jobs(plan):
            assert job.task["seconds"] < job.seconds <= 1200 or suite.name == "correctness"
