"""MJX: MuJoCo in JAX, compiled for the processor, differentiated in reverse mode."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from known import correctness, start_of
from mujoco import mjx
from mujoco_known import SUBSTEPS, hard_model, indices, start_state
from protocol import play, version
from workload import CHECK_STEPS, WEIGHTS, direction, laikago, slope_error

VERSION = version("mujoco-mjx", "jax")
# reverse mode refuses loops of unknown length, so that its solver gets one iteration there; running forward it gets
# enough to agree with MuJoCo
FORWARD, REVERSE = (4, 8), (1, 4)
# steps in one compiled call: compiling takes a minute or two, so one length has to serve all. Going back, states at the
# ends of chunks are kept, and a chunk is run again with its reverse
CHUNK = 50


class MJX:
    notes = {
        "forward": "32-bit, 4 solver iterations",
        "backward": "32-bit, 1 solver iteration (reverse mode allows no more)",
    }

    def __init__(self, task):
        self.version = VERSION
        self.scene, self.xml = task.json("laikago.json"), task.text("laikago.xml")
        self.compiled = {}

    def simulator(self, iterations):
        model = mujoco.MjModel.from_xml_string(self.xml)
        model.opt.iterations, model.opt.ls_iterations = iterations
        data = mujoco.MjData(model)
        data.qpos[:] = self.scene["q"]
        return mjx.put_model(model), mjx.put_data(model, data)

    def chunk(self, iterations):
        """(q, qd, the solver's warm start), controls -> the same, so many steps later."""
        model, data = self.simulator(iterations)

        def step(state, u):
            q, qd, warm = state
            d = mjx.step(model, data.replace(qpos=q, qvel=qd, qacc_warmstart=warm, ctrl=u))
            return (d.qpos, d.qvel, d.qacc_warmstart), None

        return lambda state, u: jax.lax.scan(step, state, u)[0]

    def pull(self, state, u, bar):
        return jax.vjp(self.chunk(REVERSE), state, u)[1](bar)

    def kept(self, name, batch):
        """Compiled once for each batch."""
        if (name, batch) not in self.compiled:
            function = {"forward": self.chunk(FORWARD), "there": self.chunk(REVERSE), "back": self.pull}[name]
            given = (self.start(batch), self.controls(batch), self.start(batch))[: 3 if name == "back" else 2]
            mapped = function if batch == 1 else jax.vmap(function)
            self.compiled[name, batch] = jax.jit(mapped).lower(*given).compile()
        return self.compiled[name, batch]

    def start(self, batch):
        q, rest = jnp.array(self.scene["q"]), jnp.zeros(18)
        return tuple(x if batch == 1 else jnp.tile(x, (batch, 1)) for x in (q, rest, rest))

    def controls(self, batch):
        u = jnp.tile(jnp.array(self.scene["targets"]), (CHUNK, 1))
        return u if batch == 1 else jnp.tile(u, (batch, 1, 1))

    def bar(self, batch):
        q, rest = jnp.zeros(19).at[:3].set(jnp.array(WEIGHTS)), jnp.zeros(18)
        return tuple(x if batch == 1 else jnp.tile(x, (batch, 1)) for x in (q, rest, rest))

    def stand(self, steps):
        q = self.forward(steps, 1)()
        data = mjx.kinematics(*(x.replace(qpos=q) if hasattr(x, "qpos") else x for x in self.simulator(FORWARD)))
        data = mjx.collision(self.simulator(FORWARD)[0], data)
        return float(q[2]), int((np.asarray(getattr(data, "_impl", data).contact.dist) < 0).sum())

    def forward(self, steps, batch):
        run, start, u = self.kept("forward", batch), self.start(batch), self.controls(batch)

        def all_chunks():
            state = start
            for _ in range(steps // CHUNK):
                state = run(state, u)
            return state[0].block_until_ready()

        return all_chunks

    def gradient(self, steps, batch):
        run, pull = self.kept("there", batch), self.kept("back", batch)
        start, u, bar, ends = self.start(batch), self.controls(batch), self.bar(batch), []  # type: ignore[var-annotated]

        def there():
            ends[:] = [start]
            for _ in range(steps // CHUNK):
                ends.append(run(ends[-1], u))
            ends[-1][0].block_until_ready()

        def back():
            state_bar, found = bar, []
            for state in reversed(ends[:-1]):
                state_bar, u_bar = pull(state, u, state_bar)
                found.append(u_bar)
            return jax.block_until_ready(found)

        return there, back

    def gradient_error(self):
        """In 64 bits, where differences have digits enough, from where it stands."""
        state = self.start(1)
        for _ in range(4):
            state = self.kept("forward", 1)(state, self.controls(1))
        state = tuple(np.asarray(x, float) for x in state)
        u = np.tile(self.scene["targets"], (CHECK_STEPS, 1))
        with jax.enable_x64(True):
            loss = lambda u: (self.chunk(REVERSE)(state, u)[0][:3] * jnp.array(WEIGHTS)).sum()  # noqa: E731
            both = jax.jit(jax.value_and_grad(loss))  # compiled once for the gradient and for its differences
            gradient = np.asarray(both(u)[1])
            return slope_error(lambda u: float(both(u)[0]), gradient, u, direction(*u.shape), 1e-5)


class MJXProblem:
    """Derivatives in forward mode, which allows its solver as many iterations as it likes."""

    step, note = 1e-5, f"64-bit, forward mode, {SUBSTEPS} steps in one"

    def __init__(self, task, problem):
        jax.config.update("jax_enable_x64", True)
        self.problem = problem
        self.host = hard_model(task, problem)
        self.host.opt.iterations, self.host.opt.tolerance = 20, 1e-12
        self.in_q, self.in_v = indices(self.host, problem)
        self.run = jax.jit(self.motion())

    def motion(self):
        """The outputs as a function of q, qd and u."""
        model, data = mjx.put_model(self.host), mjx.put_data(self.host, mujoco.MjData(self.host))
        shape = jax.eval_shape(lambda d: mjx.step(model, d), data)
        data = jax.tree_util.tree_map(lambda a, b: jnp.asarray(a).astype(b.dtype), data, shape)

        def outputs(q, qd, u):
            start = data.replace(qpos=q, qvel=qd, ctrl=u)
            last = jax.lax.fori_loop(0, SUBSTEPS * self.problem["steps"], lambda _, d: mjx.step(model, d), start)
            at = {"q": (last.qpos, self.in_q), "qd": (last.qvel, self.in_v)}
            return jnp.stack([at[kind][0][at[kind][1][name]] for kind, name in self.problem["outputs"]])

        return outputs

    def state(self, given):
        found = start_state(self.host, self.problem, given, self.in_q, self.in_v)
        return tuple(jnp.asarray(x, float) for x in found)

    def outputs(self, given):
        return np.asarray(self.run(*self.state(given)))

    def jacobian(self):
        state = self.state(start_of(self.problem))
        push = jax.jit(lambda turn: jax.jvp(self.run, state, turn)[1])
        columns = []
        for kind, name in self.problem["inputs"]:
            turn = [jnp.zeros_like(x) for x in state]
            which = ("q", "qd", "u").index(kind)
            turn[which] = turn[which].at[0 if kind == "u" else (self.in_q, self.in_v)[which][name]].set(1.0)
            columns.append(np.asarray(push(tuple(turn))))
        return np.array(columns).T


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, MJX(task)),
        "correctness": lambda task: correctness(task, MJXProblem, VERSION),
    })  # fmt: skip
