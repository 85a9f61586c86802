"""Every public function with every argument wrong in turn: only our errors come out, and they name the argument.

A value that is right for an argument is listed in FINE, so that an error that goes missing is seen, too.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

import jointgrad as jg

OURS = (jg.ModelError, jg.InputError, jg.SimulationError)


class Stranger:
    def __repr__(self) -> str:
        return "<a stranger>"


JUNK = {
    "None": None, "a text": "x", "NaN": float("nan"), "infinity": float("inf"), "minus five": -5, "a half": 2.5, "True": True,
    "a list": [], "a dict": {}, "a stranger": Stranger(), "texts": np.array(["a", "b"]), "NaNs": np.full((2, 2), np.nan),
}  # fmt: skip
NUMBERS = ("NaN", "infinity", "minus five", "a half", "True")


@functools.cache
def model() -> jg.Model:
    robot = jg.Description("arm")
    for k in range(2):
        robot.add_link(f"link{k}", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1)).shapes.append(jg.Shape("sphere", (0.1,)))
        robot.add_joint(
            f"joint{k}", "revolute", f"link{k - 1}" if k else None, f"link{k}", axis=(0, 1, 0), limit=(-3, 3)
        )
        robot.add_actuator(f"motor{k}", f"joint{k}")
    return jg.World().add(robot).add_ground(height=-9.0).compile()


def robot() -> jg.Description:
    found = jg.Description("r")
    found.add_link("link", 1.0, inertia=(0.1, 0.1, 0.1))
    return found


@functools.cache
def motion() -> jg.Trajectory:
    return jg.rollout(model(), model().initial_state(), np.zeros((3, 2)), outputs=("link.position",))


def calls() -> dict:
    """The function and arguments with which it works."""
    m, s, u = model(), model().initial_state(), np.zeros((3, 2))
    run = {"steps": 3, "force": None, "outputs": (), "threads": None, "memory": None, "on_nan": "raise", "keep": True}
    bars = {"q_bar": np.ones(2), "qd_bar": np.ones(2), "bars": {}, "wrt": ("state",)}
    one = {"model": m, "state": s, "u": u[0], "force": None}
    return {
        "rollout": (jg.rollout, {"model": m, "state": s, "u": u, **run}),
        "step": (jg.step, {**one, "threads": None, "on_nan": "raise"}),
        "linearize": (jg.linearize, {**one, "wrt": "state", "threads": None}),
        "inspect": (jg.inspect, one),
        "hessian_product": (
            lambda model, state, u, along, wrt, step: jg.hessian_product(
                model, state, u, lambda motion: (motion.q, None), along, wrt=wrt, step=step
            ),
            {"model": m, "state": s, "u": u, "along": {"q": np.ones(2)}, "wrt": (), "step": None},
        ),
        "backward": (motion().backward, bars),
        "tangent": (
            motion().tangent,
            {"q": np.ones(2), "qd": None, "u": None, "force": None, "params": {}, "outputs": None},
        ),
        "initial_state": (m.initial_state, {"batch": None}),
        "replace": (m.replace, {"values": {}}),
        "replace mass": (lambda mass: m.replace({"link.mass": mass}), {"mass": np.ones(3)}),
        "environment": (m.replace({"link.mass": np.ones((2, 3))}).environment, {"env": 0}),
        "is_shared": (m.is_shared, {"name": "link.mass"}),
        "link": (lambda link: m.link(link), {"link": "link0"}),
        "graft": (
            functools.partial(jg.graft, m),
            {"target": "joint.force", "inputs": ("joint.velocity",), "network": None, "rows": None, "per": "each", "sees": "own",
             "mode": "residual", "shared": False},
        ),
        "MLP": (
            lambda **k: jg.graft(m, "joint.force", ("joint.velocity",), jg.MLP(**k)),
            {"hidden": (4,), "activation": "tanh", "scale": 1.0, "seed": 0},
        ),
        "World": (
            lambda **k: jg.World(**k).add(robot()).compile(),
            {"gravity": (0, 0, -9.8), "dt": 1e-3, "integrator": "semi_implicit", "density": 0.0, "viscosity": 0.0},
        ),
        "add": (
            jg.World().add,
            {"robot": robot(), "name": None, "position": (0, 0, 0), "orientation": (1, 0, 0, 0), "base": None},
        ),
        "add_ground": (jg.World().add_ground, {"friction": None, "restitution": 0.0, "height": 0.0, "name": "ground"}),
        "pair": (
            lambda first, second, contact, friction: jg.World().pair(first, second, contact, friction=friction),
            {"first": "a", "second": "b", "contact": None, "friction": 1.0},
        ),
        "compile": (
            jg.World().add(robot()).compile,
            {"dt": 1e-3, "integrator": "semi_implicit", "unphysical": "error", "contact": None, "constraints": True,
             "max_contacts": None},
        ),
        "Impulse": (
            lambda **k: jg.World().add(robot()).compile(contact=jg.Impulse(**k)),
            {"sweeps": 50, "cone": True, "baumgarte": 0.2, "softness": 1e-5, "margin": 1e-3, "max_push_out_speed": 2.0,
             "form": "auto"},
        ),
        "Spring": (
            lambda **k: jg.World().add(robot()).compile(contact=jg.Spring(**k)),
            {"stiffness": 1.0, "damping": 1.0, "exponent": 1.5, "friction_law": "brown", "static_friction": 0.5, "transition": 0.1},
        ),
        "add_link": (with_part("add_link"), {"name": "a", "mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1)}),
        "add_joint": (
            with_part("add_joint"),
            {"name": "j", "kind": "revolute", "parent": None, "child": "link", "position": (0, 0, 0), "orientation": (1, 0, 0, 0),
             "axis": (0, 0, 1), "damping": 0.0, "stiffness": 0.0, "armature": 0.0, "rest": None, "initial": None, "friction": 0.0,
             "limit": (-1, 1), "anchor": (0, 0, 0), "mimic": None, "effort_limit": 1.0, "velocity_limit": 1.0},
        ),
        "Shape": (
            with_shape,
            {"kind": "sphere", "size": (0.1,), "position": (0, 0, 0), "orientation": (1, 0, 0, 0), "role": "both",
             "color": (1, 1, 1, 1), "friction": (1.0,)},
        ),
        "load": (jg.load, {"source": "<robot name='r'><link name='l'/></robot>"}),
        "load_world": (jg.load_world, {"source": "<mujoco><worldbody/></mujoco>"}),
        "to_urdf": (jg.to_urdf, {"robot": robot()}),
        "to_mjcf": (jg.to_mjcf, {"world": robot(), "dt": None, "integrator": None}),
    }  # fmt: skip


def with_part(add: str):
    def made(**values):
        found = robot()
        getattr(found, add)(**values)
        return found.compile()

    return made


def with_shape(**values):
    found = robot()
    found.link("link").shapes.append(jg.Shape(**values))
    return found.compile()


# what is right, or means nothing: by function and argument, or by argument alone
FINE = {
    "u": {"None"}, "force": {"None"}, "threads": {"None"}, "memory": {"None", "infinity"},
    "batch": {"None"}, "outputs": {"None", "a list"},
    "wrt": {"a list"}, "bars": {"None", "a dict"}, "params": {"None", "a dict"}, "q": {"None"}, "qd": {"None"}, "q_bar": {"None"},
    "qd_bar": {"None"}, "values": {"a dict"}, "rows": {"None"}, "network": {"None"}, "base": {"None"}, "max_contacts": {"None"},
    "gravity": set(), "mimic": {"None"}, "rest": {"None", *NUMBERS[2:4]}, "initial": {"None", *NUMBERS[2:4]}, "parent": {"None"},
    "effort_limit": {"infinity", "minus five", "a half"}, "velocity_limit": {"infinity", "minus five", "a half"},
    ("rollout", "steps"): {"None"}, ("rollout", "outputs"): {"a list"}, ("linearize", "wrt"): set(),
    ("hessian_product", "u"): set(), ("replace mass", "mass"): set(),
    ("hessian_product", "step"): {"None", "a half"}, ("hessian_product", "along"): set(),
    ("add", "name"): {"None", "a text"}, ("add_ground", "name"): {"a text"}, ("add_ground", "friction"): {"None", "a half"},
    ("pair", "friction"): {"None", "a half"},
    ("pair", "contact"): {"None"}, ("compile", "contact"): {"None"}, ("compile", "dt"): {"None", "a half"},
    ("compile", "integrator"): {"None"}, ("to_mjcf", "dt"): {"None", "a half"}, ("to_mjcf", "integrator"): {"None"},
    ("add_ground", "height"): {"minus five", "a half"}, "first": {"a text"}, "second": {"a text"}, ("World", "dt"): {"a half"},
    ("add_link", "name"): {"a text"}, ("add_joint", "name"): {"a text"}, ("Shape", "friction"): {"a list"},
    ("Shape", "color"): {"a list"}, ("add_joint", "stiffness"): {"minus five", "a half"}, ("MLP", "hidden"): {"a list"},
    ("MLP", "scale"): {"a half", "minus five"}, ("graft", "mode"): set(), ("rollout", "keep"): {"True"},
    ("graft", "shared"): {"True"}, ("compile", "constraints"): {"True"}, ("Impulse", "cone"): {"True"},
}  # fmt: skip
POSITIVE = ("density", "viscosity", "friction", "baumgarte", "softness", "margin", "max_push_out_speed", "stiffness",
            "damping", "exponent", "static_friction", "transition", "mass", "armature")  # fmt: skip


def is_fine(function: str, argument: str, junk: str) -> bool:
    found = FINE.get((function, argument), FINE.get(argument))
    if found is None:
        found = {"a half"} if argument in POSITIVE else set()
    return junk in found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("function", list(calls()))
def test_a_wrong_argument_is_named(function):
    call, arguments = calls()[function]
    call(**arguments)
    wrong = []
    for argument in arguments:
        for name, value in JUNK.items():
            try:
                call(**{**arguments, argument: value})
            except OURS as error:
                is_named = argument in str(error) or argument == "source"  # which is named by its own name
                if is_fine(function, argument, name) or not is_named or len(str(error).splitlines()) != 1:
                    wrong.append(f"{argument} = {name}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{argument} = {name}: {type(error).__name__}: {error}")
            else:
                if not is_fine(function, argument, name):
                    wrong.append(f"{argument} = {name}: nothing is said")
    assert not wrong, "\n".join(wrong)


def framework_calls(name: str) -> dict:
    m, steps = model(), {"steps": 3, "outputs": (), "only_last": False, "memory": None}
    if name == "torch":
        torch = pytest.importorskip("torch", reason="needs PyTorch (extra [torch])")
        from jointgrad.torch import Simulator

        zeros = torch.zeros(2, dtype=torch.float64)
        run = {"q": zeros, "qd": zeros, "u": None, "force": None, "params": {}}
        return {
            "Simulator": (Simulator, {"model": m, "threads": None, "on_nan": "raise"}),
            "forward": (Simulator(m), {**run, "u": zeros}),
            "rollout": (Simulator(m).rollout, {**run, **steps}),
        }
    jax = pytest.importorskip("jax", reason="needs JAX (extra [jax])")
    import jointgrad.jax as jj

    zeros = jax.numpy.zeros(2)
    run = {
        "model": m,
        "q": zeros,
        "qd": zeros,
        "u": None,
        "force": None,
        "params": {},
        "threads": None,
        "on_nan": "raise",
    }
    return {"step": (jj.step, run), "rollout": (jj.rollout, {**run, **steps})}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_wrong_argument_of_a_framework_is_named(name):
    fine = {"q": set(), "qd": set(), "only_last": {"True"}, "steps": set(), "memory": {"None"},
            "outputs": {"a list"}}  # fmt: skip
    wrong = []
    for function, (call, arguments) in framework_calls(name).items():
        call(**arguments)
        for argument in arguments:
            for junk, value in JUNK.items():
                allowed = fine.get((function, argument), fine.get(argument, FINE.get(argument, set())))
                said = outcome(lambda: call(**{**arguments, argument: value}), argument)  # noqa: B023
                if (said is None) != (junk in allowed) or (said is not None and said != "ours"):
                    wrong.append(f"{function}: {argument} = {junk}: {said or 'nothing is said'}")
    assert not wrong, "\n".join(wrong)


def outcome(call, argument: str) -> str | None:
    """None where nothing is raised, "ours" for one line of ours that names the argument, else what came."""
    try:
        call()
    except OURS as error:
        is_clear = argument in str(error) and len(str(error).splitlines()) == 1
        return "ours" if is_clear else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


# an empty batch ------------------------------------------------------------------------------------------------------------


def test_an_empty_batch_is_an_answer_like_any_other():
    """No environments in, none out, with all shapes; the sum over them of a shared parameter's cotangents is zero."""
    m = model()
    state = m.initial_state(0)
    assert jg.step(m, state, np.zeros((0, 2))).q.shape == (0, 2)
    for memory in (None, "1 MB"):
        run = jg.rollout(m, state, np.zeros((3, 0, 2)), outputs=("link.position",), memory=memory)
        assert (
            run.q.shape == (4, 0, 2)
            and run.last.qd.shape == (0, 2)
            and run.outputs["link.position"].shape == (4, 0, 3, 3)
        )
        gradient = run.backward(np.zeros((0, 2)), np.zeros((4, 0, 2)))
        assert gradient.q.shape == (0, 2) and gradient.u.shape == (3, 0, 2)
        assert all(bar.shape == m.params[name].shape and not bar.any() for name, bar in gradient.params.items())
        assert [x.shape for x in run.tangent(q=np.zeros((0, 2)))] == [(4, 0, 2), (4, 0, 2)]
    assert jg.linearize(m, state)[0].shape == (0, 4, 4)
    assert jg.inspect(m, state).link_position.shape == (0, 3, 3)
    # and what comes after is not another model's
    heavy = m.replace({"link.mass": 3.0 * m.params["link.mass"]})
    one = jg.State(np.ones((1, 2)), np.zeros((1, 2)))
    before = jg.rollout(heavy, one, steps=5).last.qd
    jg.rollout(m, state, steps=5)
    np.testing.assert_array_equal(jg.rollout(heavy, one, steps=5).last.qd, before)


# files -----------------------------------------------------------------------------------------------------------------------


def broken_files(folder, good: bytes) -> dict:
    """A file cut short, of other bytes, none, a folder, and none at all."""
    for name, data in {"cut": good[: len(good) // 2], "other": b"\x00" * 100, "empty": b"", "text": b"hello"}.items():
        (folder / f"{name}.npz").write_bytes(data)
    (folder / "folder.npz").mkdir()
    wrong = bytearray(good)
    wrong[len(good) // 3] ^= 255
    (folder / "bit.npz").write_bytes(bytes(wrong))
    return {name: folder / f"{name}.npz" for name in ("cut", "other", "empty", "text", "folder", "none")}


def recordings(folder):
    from jointgrad.optimize.recording_file import read_recording

    q = np.zeros((5, 2))
    np.savez(folder / "good.npz", q=q, qd=q)
    np.savez(folder / "texts.npz", q=np.array([["a"]]), qd=q)
    np.savez(folder / "every.npz", q=q, qd=q, every=np.array([1, 2]))
    np.savez(folder / "half.npz", q=q, qd=q, every=1.5)
    np.savez(folder / "flat.npz", q=np.zeros(5), qd=q)
    return read_recording, [folder / f"{name}.npz" for name in ("texts", "every", "half", "flat")]


def searches(folder):
    from jointgrad.optimize.search_file import read_search, write_search

    rng = np.random.default_rng(0)
    write_search(folder / "good.npz", {}, {}, rng, [(np.zeros((1, 2)), np.zeros(1))])
    parts = {"x": np.zeros((1, 2)), "losses": np.zeros(1), "sizes": np.ones(1, dtype=int)}
    np.savez(folder / "state.npz", said=np.array('{"settings": {}, "progress": {}, "rng": {"a": 1}}'), **parts)
    np.savez(folder / "list.npz", said=np.array("[1, 2]"), **parts)
    return lambda path: read_search(path, {}, rng), [folder / "state.npz", folder / "list.npz"]


def weights(folder):
    from jointgrad.grafts.weights import load_weights, save_weights

    grafted = jg.graft(model(), "joint.force", ("joint.velocity",))
    save_weights(grafted, folder / "good.npz")
    np.savez(folder / "objects.npz", **{"0.0.0.weight": np.array([None], dtype=object)})
    return lambda path: load_weights(grafted, path), [folder / "objects.npz"]


def runs(folder):
    from jointgrad.viewer.replay import load_run

    motion().save(folder / "good.npz")
    return load_run, []


@pytest.mark.parametrize("kind", [recordings, searches, weights, runs])
def test_a_broken_file_is_named(kind, tmp_path):
    read, more = kind(tmp_path)
    read(tmp_path / "good.npz")
    broken = broken_files(tmp_path, (tmp_path / "good.npz").read_bytes())
    if kind is searches:
        assert read(broken.pop("none")) is None  # a search that begins
    for path in (*broken.values(), *more):
        with pytest.raises(jg.InputError) as caught:
            read(path)
        assert path.name in str(caught.value) and len(str(caught.value).splitlines()) == 1, str(caught.value)
    assert outcome(lambda: read(tmp_path / "bit.npz"), "bit.npz") in (None, "ours")


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    from jointgrad.grafts.weights import save_weights
    from jointgrad.viewer import html

    grafted = jg.graft(model(), "joint.force", ("joint.velocity",))
    lost = tmp_path / "none"
    for write in (
        lambda: motion().save(lost / "run.npz"),
        lambda: save_weights(grafted, lost / "w.npz"),
        lambda: html(model(), motion(), lost / "run.html"),
    ):
        with pytest.raises(jg.InputError, match=f"{lost}.*cannot be written: No such file or directory"):
            write()
    for value in (None, 3, [], Stranger()):
        with pytest.raises(jg.InputError, match="path must be a text or a Path"):
            motion().save(value)


# the command line ------------------------------------------------------------------------------------------------------------

URDF = """<robot name="r"><link name="r"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><geometry><sphere radius=".1"/></geometry></collision></link></robot>"""

COMMANDS = {
    "view without a file": (["view", "none.urdf"], "none.urdf"),
    "view into no folder": (["view", "box.urdf", "--html", "none/x.html"], "none/x.html"),
    "view at a time step of NaN": (["view", "box.urdf", "--dt", "nan", "--html", "x.html"], "dt"),
    "lint into no folder": (["lint", "box.urdf", "--fix", "none/x.urdf"], "none/x.urdf"),
    "gradcheck of a folder": (["gradcheck", "."], "there is no file"),
    "gradcheck at a negative time step": (["gradcheck", "box.urdf", "--dt", "-1"], "dt"),
    "gradcheck of a start that is not": (["gradcheck", "box.urdf", "--base", "free", "--height", "nan"], "height"),
    "replay without a file": (["replay", "none.npz", "--html", "x.html"], "none.npz"),
    "replay of another file": (["replay", "box.urdf", "--html", "x.html"], "box.urdf"),
    "replay into no folder": (["replay", "run.npz", "--html", "none/x.html"], "none/x.html"),
    "replay as a film of no speed": (["replay", "run.npz", "--gif", "x.gif", "--speed", "0"], "speed"),
    "replay of NaN": (["replay", "run.npz", "--png", "x.png", "--time", "nan"], "time"),
    "replay of no size": (["replay", "run.npz", "--png", "x.png", "--size", "0", "-5"], "size"),
    "identify without a recording": (["identify", "box.urdf", "none.npz", "--unknowns", "link.mass"], "none.npz"),
    "identify from another file": (["identify", "box.urdf", "box.urdf", "--unknowns", "link.mass"], "box.urdf"),
    "identify nothing known": (["identify", "box.urdf", "rec.npz", "--unknowns", "link.weight"], "link.weight"),
    "identify in no iterations": (
        ["identify", "box.urdf", "rec.npz", "--unknowns", "link.mass", "--iterations", "-3"],
        "iterations",
    ),
    "identify in no segments": (
        ["identify", "box.urdf", "rec.npz", "--unknowns", "link.mass", "--segments", "0"],
        "segment",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_command_is_one_line(name, tmp_path, monkeypatch, capsys):
    from jointgrad.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.urdf").write_text(URDF)
    motion().save("run.npz")
    np.savez("rec.npz", q=np.zeros((5, 0)), qd=np.zeros((5, 0)))
    arguments, word = COMMANDS[name]
    assert main(arguments) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and word in said, said


def in_a_process(code: str, **environment: str):
    settings = {k: v for k, v in (os.environ | environment).items() if v != "unset"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, timeout=120)


@pytest.mark.parametrize("arguments", [["--help"], ["lint", "none.urdf"]])
def test_a_reader_that_leaves_is_no_error(arguments):
    """`jointgrad --help | head -1`: the rest has nowhere to go, and nothing is said about it."""
    command = [sys.executable, "-m", "jointgrad", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert not said and process.returncode == 141


STEP = """
import jointgrad as jg
model = jg.zoo.pendulum().compile()
try:
    jg.step(model, model.initial_state())
except jg.InputError as error:
    print(error)
"""


def test_what_keeps_the_engine_from_being_compiled_is_told(tmp_path):
    """numba switched off, with nothing in the cache."""
    done = in_a_process(STEP, NUMBA_DISABLE_JIT="1", JOINTGRAD_CACHE=str(tmp_path))
    assert "NUMBA_DISABLE_JIT is set" in done.stdout and done.returncode == 0, done.stderr
