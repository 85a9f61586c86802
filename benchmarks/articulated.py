"""The engine without contact beside MuJoCo and Pinocchio: one run, one core, results checked before anything is timed.

    python benchmarks/articulated.py [--quick] [--out FOLDER]

Times are processor time, best of interleaved repeats; the machine may be busy, so read the ratios. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import mujoco
import numpy as np
import pinocchio as pin
from oracles.mujoco_model import mujoco_model

import jointgrad as jg
from jointgrad.bench.fit import exponent
from jointgrad.bench.timing import best, print_goals, resident, write

DT, BATCH, STEPS = 2e-3, 256, 100
ZOO = ("laikago('feet')", "pendulum(7)", "cart_pole()", "double_pendulum()", "random_tree(8, 1)")


def laikago_in_flight(batch: int, steps: int):
    model = jg.zoo.laikago(touch="feet").compile(dt=DT, contact=None)
    rng = np.random.default_rng(0)
    start = model.initial_state(batch)
    start.q[:, 7:] += 0.1 * rng.normal(size=(batch, 12))
    start.qd[:] = 0.3 * rng.normal(size=start.qd.shape)
    return model, start, rng.normal(size=(steps, batch, model.nu))


def mujoco_twin():
    m = mujoco_model(jg.zoo.laikago(touch="feet"), dt=DT)
    return m, mujoco.MjData(m)


def urdf(robot) -> str:
    """Enough URDF for Pinocchio to choose its fastest joint types."""
    links, joints = "", ""
    for k in robot.links.values():
        xx, xy, xz, yy, yz, zz = k.inertia
        inertia = f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/>'
        place = f'<origin xyz="{" ".join(map(str, k.com))}"/>'
        links += f'<link name="{k.name}"><inertial>{place}<mass value="{k.mass}"/>{inertia}</inertial></link>'
    for j in robot.joints.values():
        rpy = "1.5707963267948966 0 1.5707963267948966" if j.orientation[1] else "0 0 0"
        joints += (
            f'<joint name="{j.name}" type="{"fixed" if j.kind == "fixed" else "revolute"}">'
            f'<limit lower="-9" upper="9" effort="9" velocity="9"/><parent link="{j.parent}"/><child link="{j.child}"/>'
            f'<origin xyz="{" ".join(map(str, j.position))}" rpy="{rpy}"/><axis xyz="{" ".join(map(str, j.axis))}"/></joint>'
        )
    return f'<robot name="{robot.name}">{links}{joints}</robot>'


def check_against_mujoco() -> float:
    """Largest difference of a 100-step flight, relative to the motion."""
    model, start, u = laikago_in_flight(4, STEPS)
    ours = jg.rollout(model, start, u).last
    m, d = mujoco_twin()
    worst = 0.0
    for env in range(4):
        d.qpos[:], d.qvel[:] = start.q[env], start.qd[env]
        for k in range(STEPS):
            d.ctrl[:] = u[k, env]
            mujoco.mj_step(m, d)
        worst = max(worst, np.abs(ours.qd[env] - d.qvel).max() / np.abs(d.qvel).max())
    assert worst < 1e-9, f"differs from MuJoCo by {worst}"
    return worst


def check_against_pinocchio(model, data) -> float:
    ours, start, u = laikago_in_flight(1, 1)
    start.q[:, 3:7], start.qd[:] = (1, 0, 0, 0), 0.0  # at rest and upright both conventions of rates agree
    q = np.r_[start.q[0, :3], 0, 0, 0, 1, start.q[0, 7:]]
    tau = np.r_[np.zeros(6), u[0, 0]]
    order = [
        model.joints[model.getJointId(n)].idx_q
        for n in ours.joint_names
        if n.endswith(("hip_joint", "upper_joint", "lower_joint"))
    ]
    rates = [i - 1 for i in order]
    q_pin, tau_pin = q.copy(), tau.copy()
    q_pin[order], tau_pin[rates] = q[7:], tau[6:]
    qdd = pin.aba(model, data, q_pin, np.zeros(18), tau_pin)
    expected = jg.inspect(ours, jg.State(start.q[0], start.qd[0]), u[0, 0]).qdd
    worst = np.abs(np.r_[qdd[:6], qdd[rates]] - expected).max() / np.abs(expected).max()
    assert worst < 1e-9, f"differs from Pinocchio by {worst}"
    return worst


def forward_and_backward(repeats: int) -> dict:
    errors = {"error_mujoco": check_against_mujoco()}
    robot = pin.buildModelFromXML(urdf(jg.zoo.laikago(touch="feet")), pin.JointModelFreeFlyer())
    data = robot.createData()
    errors["error_pinocchio"] = check_against_pinocchio(robot, data)
    single = jg.Description("single")
    single.add_link("only", 1.0, inertia=(1, 1, 1))
    one = pin.buildModelFromXML(urdf(single), pin.JointModelFreeFlyer())
    one_data = one.createData()
    model, start, u = laikago_in_flight(BATCH, STEPS)
    motion = jg.rollout(model, start, u, threads=1)
    q_bar, qd_bar = np.ones_like(motion.last.q), np.ones_like(motion.last.qd)
    m, d = mujoco_twin()
    calls = 2000
    q, v, tau = pin.neutral(robot), 0.1 * np.ones(robot.nv), 0.1 * np.ones(robot.nv)
    q1, v1 = pin.neutral(one), np.zeros(one.nv)

    def fly():
        mujoco.mj_resetData(m, d)
        d.qvel[:] = start.qd[0]
        mujoco.mj_step(m, d, nstep=1000)

    times = best(
        {
            "forward": lambda: jg.rollout(model, start, u, threads=1),
            "mujoco": fly,
            "aba": lambda: [pin.aba(robot, data, q, v, tau) for _ in range(calls)],
            "aba_one_link": lambda: [pin.aba(one, one_data, q1, v1, v1) for _ in range(calls)],
            "backward": lambda: motion.backward(q_bar, qd_bar),
            "backward_state_u": lambda: motion.backward(q_bar, qd_bar, wrt=("state", "u")),
        },
        repeats,
    )
    forward = times["forward"] / (BATCH * STEPS)
    aba = (times["aba"] - times["aba_one_link"]) / calls
    return errors | {
        "forward_us": forward * 1e6,
        "mujoco_us": times["mujoco"] / 1000 * 1e6,
        "pinocchio_aba_us": aba * 1e6,
        "times_mujoco": times["mujoco"] / 1000 / forward,
        "times_pinocchio": aba / forward,
        "backward_over_forward": times["backward"] / times["forward"],
        "backward_state_u_over_forward": times["backward_state_u"] / times["forward"],
    }


def chain(n: int):
    robot = jg.Description(f"chain{n}")
    for i in range(n):
        robot.add_link(f"l{i}", 0.1, (0, 0, -0.05), (1e-4, 1e-4, 1e-5))
        axis = (1, 0, 0) if i % 2 else (0, 1, 0)
        place = (0, 0, -0.1 if i else 0.0)
        robot.add_joint(
            f"j{i}", "revolute", f"l{i - 1}" if i else None, f"l{i}", position=place, axis=axis, damping=0.01
        )
    return robot.compile(dt=1e-4)


def growth(repeats: int) -> dict:
    """How forward and backward time grow with links, steps and batch."""

    def timed(model, batch, steps):
        start = model.initial_state(batch)
        start.qd[:] = 0.1
        u = None if model.nu == 0 else np.zeros((steps, batch, model.nu))
        motion = jg.rollout(model, start, u, steps=steps, threads=1)
        bar = np.ones_like(motion.last.q)
        times = best(
            {
                "forward": lambda: jg.rollout(model, start, u, steps=steps, threads=1),
                "backward": lambda: motion.backward(bar),
            },
            repeats,
        )
        return times["forward"], times["backward"]

    laikago = jg.zoo.laikago(touch="feet").compile(dt=DT, contact=None)
    sweeps = {
        "links": ([8, 16, 32, 64, 128, 256, 512], lambda n: timed(chain(n), 8, 20)),
        "steps": ([100, 200, 400, 800, 1600], lambda n: timed(laikago, 16, n)),
        "batch": ([16, 64, 256, 1024], lambda n: timed(laikago, n, 50)),
    }
    out = {}
    for name, (sizes, run) in sweeps.items():
        forward, backward = zip(*(run(n) for n in sizes), strict=True)
        out[f"exponent_{name}_forward"], out[f"exponent_{name}_backward"] = (
            exponent(sizes, forward),
            exponent(sizes, backward),
        )
    return out


def memory() -> dict:
    """Growth of the process over a 5,000-step rollout and its reverse, the caller's own arrays not counted."""
    model, start, u = laikago_in_flight(1, 5000)
    u = 0.01 * u
    bar, wrt = np.ones_like(start.q), ("state", "params")
    jg.rollout(model, start, u[:50], threads=1).backward(
        bar, wrt=wrt
    )  # warm up: code and workspace are there from here on
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    motion = jg.rollout(model, start, u, threads=1)
    motion.backward(bar, wrt=wrt)
    return {"rollout_5000_steps_mb": (resident("VmHWM") - before) / 1e6}


COLD = """
import sys, time
start = time.perf_counter()
import jointgrad as jg
imported = time.perf_counter() - start
import numpy as np
start = time.perf_counter()
model = jg.zoo.{robot}.compile()
state = jg.step(model, model.initial_state(), np.zeros(model.nu))
motion = jg.rollout(model, model.initial_state(), np.zeros((2, model.nu)))
motion.backward(np.ones(model.nq))
print(imported, time.perf_counter() - start)
"""


def cold_start(quick: bool) -> dict:
    """Import, then first step and first backward, from an empty cache and from a filled one, in a new process each."""
    root = str(Path(__file__).resolve().parents[1])
    found: dict[str, float] = {"import_s": 0.0, "first_use_empty_cache_s": 0.0, "first_use_from_cache_s": 0.0}
    for robot in ZOO[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("first_use_empty_cache_s", "first_use_from_cache_s"):
                env = os.environ | {"JOINTGRAD_CACHE": folder, "PYTHONPATH": root}
                out = subprocess.run(
                    [sys.executable, "-P", "-c", COLD.format(robot=robot)],
                    env=env,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                imported, first = map(float, out.stdout.split())
                found["import_s"] = max(found["import_s"], imported if name.endswith("from_cache_s") else 0.0)
                found[name] = max(found[name], first)
    return found


GOALS = (
    ("times_mujoco", ">=", 6.0, "forward: times as fast as MuJoCo's step, no contact, batch 256"),
    ("times_pinocchio", ">=", 6.0, "forward: a whole step against Pinocchio's aba, binding cost taken off"),
    ("backward_over_forward", "<=", 3.5, "backward to state, control, all parameters / forward"),
    ("backward_state_u_over_forward", "<=", 3.5, "backward to state and control only / forward"),
    ("exponent_links_forward", "<=", 1.15, "forward time ~ links^this, chains of 8 to 512 links"),
    ("exponent_links_backward", "<=", 1.15, "backward time ~ links^this"),
    ("exponent_steps_forward", "<=", 1.1, "forward time ~ steps^this"),
    ("exponent_steps_backward", "<=", 1.1, "backward time ~ steps^this"),
    ("exponent_batch_forward", "<=", 1.1, "forward time ~ batch^this"),
    ("exponent_batch_backward", "<=", 1.1, "backward time ~ batch^this"),
    ("rollout_5000_steps_mb", "<=", 2.5, "memory growth, 5,000-step rollout and its reverse, MB"),
    ("import_s", "<=", 0.3, "import jointgrad, s"),
    ("first_use_empty_cache_s", "<=", 30.0, "first step and backward, empty cache, slowest zoo robot, s"),
    ("first_use_from_cache_s", "<=", 1.0, "first step and backward, from the cache, slowest zoo robot, s"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--out", type=Path, default=Path("out/articulated"))
    options = parser.parse_args()
    found = memory()
    found |= cold_start(options.quick)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    repeats = 5 if options.quick else 25
    found |= forward_and_backward(repeats)
    found |= growth(max(3, repeats // 3))
    print(f"python {' '.join(sys.argv)}   MuJoCo {mujoco.__version__}, Pinocchio {pin.__version__}, one core")
    print(
        f"checked: flight against MuJoCo {found['error_mujoco']:.1e}, acceleration against Pinocchio {found['error_pinocchio']:.1e}"
    )
    print(
        f"per environment and step: ours {found['forward_us']:.3f} us, MuJoCo {found['mujoco_us']:.2f} us, "
        f"aba {found['pinocchio_aba_us']:.2f} us"
    )
    print_goals(found, GOALS)
    write(found, options.out)


if __name__ == "__main__":
    main()
