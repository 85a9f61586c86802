"""A step or a rollout as a function of named arrays: what PyTorch and JAX see of the engine.

A Call says which arrays come in and with which shapes; it is checked once and may be called often. Its reverse needs
no more than the arrays that went in and the states that came out. An axis that a framework maps a function over is
folded into the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...model.arguments import byte_count, check_flag, checked_count, checked_names, shown
from ...model.arrays import PARAMS, Model, State
from ...model.errors import InputError
from ..gradients import Meaning
from .inputs import check_options
from .outputs import LOADS, OUTPUTS
from .rollout import known_motion, rolled_out
from .runtime import controls_hint
from .single_steps import step, step_adjoint
from .trajectory import EXACT, Gradient, Trajectory, check_meaning

Shapes = Mapping[str, tuple[int, ...]]
STATE = ("q", "qd", "more")
# what Trajectory.backward calls them; all others are parameters
WRT = {"q": "state", "qd": "state", "more": "state", "u": "u", "force": "force"}


class Kept(NamedTuple):
    """What the way back needs: a motion, and its last state apart where that one alone has outputs."""

    motion: Trajectory
    end: Trajectory | None


@dataclass(frozen=True)
class Call:
    """`inputs` names the arrays in their order: q, qd, further state where the model has any, then u, force and parameters where
    given."""

    model: Model
    inputs: tuple[str, ...]
    is_batched: bool
    own_axis: frozenset[str]  # parameters that come with a value per environment
    steps: int | None = None  # None for one step, which has no time axis
    has_force_over_time: bool = False
    only_last: bool = False
    outputs: tuple[str, ...] = ()
    threads: int | None = None
    memory: int | str | None = None
    on_nan: str = "raise"
    gradient: Meaning = EXACT
    outputs_at: str = "every"  # state, or the "last" alone
    links: tuple[int, ...] | None = None  # of the outputs; all, unless said

    # shapes ------------------------------------------------------------------------------------------------------------

    @property
    def results(self) -> tuple[str, ...]:
        return (*self.state, *self.outputs)

    @property
    def state(self) -> tuple[str, ...]:
        return STATE if self.model.n_more else STATE[:2]

    @property
    def returns_states(self) -> bool:
        """Whether every state comes out, so that the way back needs no second run."""
        return self.steps is not None and not self.only_last

    def has_time(self, name: str, is_result: bool = False) -> bool:
        if is_result:
            return self.returns_states if name in STATE else self.outputs_at == "every"
        return self.steps is not None and (name == "u" or (name == "force" and self.has_force_over_time))

    def result_shapes(self, batch: int | None) -> list[tuple[int, ...]]:
        """Shapes of what comes out of a batch of this size."""
        widths: dict[str, tuple[int, ...]] = {
            "q": (self.model.nq,),
            "qd": (self.model.nv,),
            "more": (self.model.n_more,),
        }
        n_links = self.model.n_links if self.links is None else len(self.links)
        widths |= {name: (n_links, *OUTPUTS[name]) for name in self.outputs}
        rows = () if batch is None else (batch,)
        times = [((self.steps or 0) + 1,) if self.has_time(name, True) else () for name in self.results]
        return [(*time, *rows, *widths[name]) for time, name in zip(times, self.results, strict=True)]

    # the function and its reverse ----------------------------------------------------------------------------------------

    def forward(self, arrays: Sequence[np.ndarray], keep: bool) -> tuple[list[np.ndarray], Kept | None]:
        """What comes out, and, if it is to be kept and there is one, the motion for the way back."""
        try:
            model, state, u, force = self._parts(arrays)
            if self.steps is None:
                last = step(model, state, u, force, self.threads, self.on_nan)
                return [getattr(last, name) for name in self.state], None
            kept = self._rollout(model, state, u, force, keep or not self.only_last)
        except InputError as error:
            raise InputError(_in_words_of_the_caller(error)) from None
        # arrays that may be written to: the frameworks themselves notice changes in place
        motion = kept.motion
        states = motion.run.last if self.only_last else motion.run.states()
        found = [motion.run.unbatched(x, 0 if self.only_last else 1) for x in states]
        return [*found, *(self._output(kept, name) for name in self.outputs)], kept if keep else None

    def _output(self, kept: Kept, name: str) -> np.ndarray:
        """A named output as the caller sees it."""
        whose = kept.motion if kept.end is None or name in LOADS else kept.end
        array = whose.run.outputs[name] if self.outputs_at == "every" else whose.run.outputs[name][-1]
        if self.links is not None:
            array = array.take(self.links, -1 - len(OUTPUTS[name]))
        return whose.run.unbatched(array, int(self.outputs_at == "every"))

    def _output_bar(self, motion: Trajectory, name: str, bar: np.ndarray) -> np.ndarray:
        """The converse: its cotangent for all states of a motion and all links."""
        if self.outputs_at == "every" and self.links is None:
            return bar
        rows = () if not self.is_batched else (motion.run.inputs.batch,)
        full = np.zeros((motion.run.inputs.steps + 1, *rows, self.model.n_links, *OUTPUTS[name]))
        into = full if self.outputs_at == "every" else full[-1]
        axis = -1 - len(OUTPUTS[name])
        whose = range(self.model.n_links) if self.links is None else self.links
        np.add.at(
            np.moveaxis(into, axis, 0), list(whose), np.moveaxis(np.asarray(bar), axis, 0)
        )  # a link may come twice
        return full

    def backward(
        self,
        arrays: Sequence[np.ndarray],
        results: Sequence[np.ndarray],
        bars: Sequence[np.ndarray | None],
        needs: Sequence[str],
        motion: Kept | None = None,
    ) -> list[np.ndarray]:
        """Cotangents of the inputs named in `needs`, from those of the results."""
        wrt = tuple({WRT.get(name, "params") for name in needs})
        try:
            gradient = self._gradient(arrays, results, bars, wrt, motion)
        except InputError as error:
            raise InputError(_in_words_of_the_loss(error)) from None
        return [gradient.params[name] if name in PARAMS else getattr(gradient, name) for name in needs]

    def _gradient(
        self, arrays: Sequence, results: Sequence, bars: Sequence, wrt: tuple[str, ...], kept: Kept | None
    ) -> Gradient:
        more_bar = bars[2] if self.model.n_more else None
        if self.steps is None:
            model, state, u, force = self._parts(arrays)
            return step_adjoint(model, state, u, bars[0], bars[1], force, self.threads, wrt, more_bar)
        motion, end = kept or self._motion_again(arrays, results)
        given = {name: bar for name, bar in zip(self.outputs, bars[len(self.state) :], strict=True) if bar is not None}
        own = {n: self._output_bar(motion, n, bar) for n, bar in given.items() if end is None or n in LOADS}
        if end is None or len(own) == len(given):
            return motion.backward(bars[0], bars[1], own, wrt=wrt, more_bar=more_bar)
        rest = {n: self._output_bar(end, n, bar) for n, bar in given.items() if n not in LOADS}
        last = end.backward(bars=rest, wrt=("state", "params") if "params" in wrt else ("state",))
        q_bar, qd_bar = self._at_the_end(bars[0], last.q), self._at_the_end(bars[1], last.qd)
        found = motion.backward(q_bar, qd_bar, own, wrt=wrt, more_bar=more_bar)
        return replace(found, params={name: x + last.params[name] for name, x in found.params.items()})

    def _at_the_end(self, bar: np.ndarray | None, more: np.ndarray) -> np.ndarray:
        """A cotangent of the states that came out, and one more of the last of them."""
        if self.only_last:
            return more if bar is None else bar + more
        whole = np.zeros((int(self.steps or 0) + 1, *more.shape)) if bar is None else bar.copy()
        whole[-1] += more
        return whole

    def _parts(self, arrays: Sequence[np.ndarray]) -> tuple[Model, State, Any, Any]:
        """Model, state, controls and outside forces."""
        u, force = (arrays[self.inputs.index(name)] if name in self.inputs else None for name in ("u", "force"))
        return self._model(arrays), State(*arrays[: len(self.state)]), u, force

    def _model(self, arrays: Sequence[np.ndarray]) -> Model:
        values = {name: x for name, x in zip(self.inputs, arrays, strict=True) if name in PARAMS}
        return self.model.replace(values) if values else self.model

    def _rollout(self, model: Model, state: State, u: Any, force: Any, keep: bool) -> Kept:
        # PyTorch notices itself when a tensor was changed in place, and JAX changes none
        apart = self._apart
        motion = rolled_out(
            model, state, u, steps=self.steps, force=force, threads=self.threads, memory=self.memory, on_nan=self.on_nan,
            outputs=tuple(name for name in self.outputs if name not in apart), keep=keep,
        )  # fmt: skip
        motion.gradient = self.gradient
        return Kept(motion, self._end(model, motion.run.last))

    @property
    def _apart(self) -> tuple[str, ...]:
        """Outputs that are asked of the last state apart, so that no step before it has to say them."""
        return tuple(name for name in self.outputs if name not in LOADS) if self.outputs_at == "last" else ()

    def _end(self, model: Model, last: tuple[np.ndarray, ...]) -> Trajectory | None:
        """The last state as a motion of no steps, for its outputs."""
        if not self._apart:
            return None
        state = State(*(x if self.is_batched else x[0] for x in last))
        return rolled_out(
            model, state, None, steps=0, force=None, outputs=self._apart, threads=self.threads, warns=False
        )

    def _motion_again(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Kept:
        """The motion whose states came out, or, where only the last one did, the same motion run once more."""
        model, state, u, force = self._parts(arrays)
        if self.returns_states:
            motion = known_motion(model, results[: len(self.state)], u, force=force, threads=self.threads)
            motion.gradient = self.gradient
            return Kept(motion, self._end(model, motion.run.last))
        return self._rollout(model, state, u, force, True)

    # axes that a framework maps over ---------------------------------------------------------------------------------------

    def mapped(self, count: int) -> Call:
        """The call that runs `count` of this one as one batch; parameters that are inputs get a value per environment."""
        own = {n: self.model.params[n] for n in self.model.own_params}
        model = self.model
        if own:
            repeated = {n: np.tile(v, (count,) + (1,) * (v.ndim - 1)) for n, v in own.items()}
            model = model.with_params({**model.params, **repeated}, count * (model.batch or 1))
        given = frozenset(n for n in self.inputs if n in PARAMS)
        return replace(self, model=model, is_batched=True, own_axis=given)

    def folded(self, xp: ModuleType, name: str, x: Any, batch: int, is_result: bool = False) -> Any:
        """An array (count, ...) for the mapped call. xp is the library that it belongs to."""
        if name in PARAMS and not is_result and self.is_batched and name not in self.own_axis:
            x = xp.broadcast_to(x[:, None], (x.shape[0], batch, *x.shape[1:]))
        if self.has_time(name, is_result):
            x = x.swapaxes(0, 1)
            return x.reshape(x.shape[0], -1, *x.shape[3:]) if self.is_batched else x
        return x.reshape(-1, *x.shape[2:]) if self.is_batched else x

    def unfolded(self, name: str, x: Any, count: int, is_result: bool = False) -> Any:
        """The converse, for results and for cotangents of inputs."""
        has_time = self.has_time(name, is_result)
        if self.is_batched:
            rows = x.shape[has_time] // count
            x = x.reshape(*x.shape[:has_time], count, rows, *x.shape[1 + has_time :])
        if name in PARAMS and not is_result and self.is_batched and name not in self.own_axis:
            x = x.sum(1)
        return x.swapaxes(0, 1) if has_time else x


def _in_words_of_the_caller(error: InputError) -> str:
    """q and qd are arrays of their own here, not parts of a State."""
    return str(error).replace("state.q", "q")


def _in_words_of_the_loss(error: InputError) -> str:
    text = str(error).replace("bars[", "_bar[")
    for name, words in (("qd_bar", "qd"), ("q_bar", "q"), ("more_bar", "more"), ("_bar", "output")):
        text = text.replace(name, f"the gradient that the loss hands back for {words}")
    return text


# checks ------------------------------------------------------------------------------------------------------------------


def checked_call(
    model: Model, shapes: Shapes, *, steps: int | None = None, is_step: bool = False, **options: Any
) -> Call:
    """The call for arrays of these shapes, or an error that names the array, what it must be and what came."""
    check_options(model, options.get("threads"), options.get("on_nan", "raise"))
    byte_count(options.get("memory"))
    check_meaning(options.get("gradient", EXACT))
    check_flag("only_last", options.get("only_last", False))
    q, nq = shapes["q"], model.nq
    if q[-1:] != (nq,) or len(q) > 2:
        raise InputError(f"q has shape {q}, but must have ({nq},) or (batch, {nq})")
    batch = q[:-1]
    if model.batch is not None and batch != (model.batch,):
        raise InputError(f"q has shape {q}, but the model has parameters for {model.batch} environments")
    _check("qd", shapes["qd"], (*batch, model.nv))
    if model.n_more:
        _check("more", shapes["more"], (*batch, model.n_more))
    n_steps = None if is_step else _check_controls(model, shapes, batch, steps)
    if is_step and "u" in shapes:
        _check("u", shapes["u"], (*batch, model.nu), functools.partial(controls_hint, model))
    has_time = _check_force(model, shapes.get("force"), batch, n_steps)
    own = frozenset(n for n in shapes if n not in (*STATE, "u", "force") and _check_param(model, n, shapes[n], batch))
    options["outputs"] = checked_names("outputs", options.get("outputs", ()), OUTPUTS, "output")
    options["links"] = checked_links(model, options.get("links"))
    check_outputs_at(options.get("outputs_at", "every"))
    if options.get("memory") is not None and not options.get("only_last"):
        raise InputError("memory bounds what is kept, but every state is to be returned: ask for only_last=True")
    return Call(model, tuple(shapes), bool(batch), own, n_steps, has_time, **options)


def checked_links(model: Model, names: Any) -> tuple[int, ...] | None:
    """Rows of the links whose outputs are asked for; None for all of them."""
    if names is None:
        return None
    return tuple(model.link_names.index(name) for name in checked_names("links", names, model.link_names, "link"))


def check_outputs_at(given: Any) -> None:
    if given not in ("every", "last"):
        raise InputError(f'outputs_at must be "every" or "last", but is {shown(given)}')


def _check(name: str, shape: tuple[int, ...], wanted: tuple, hint: Any = None) -> None:
    if shape != wanted:
        raise InputError(f"{name} has shape {shape}, but must have {wanted}{hint(shape) if hint else ''}")


def _check_controls(model: Model, shapes: Shapes, batch: tuple[int, ...], steps: int | None) -> int:
    """How many steps are asked for."""
    u = shapes.get("u")
    if u is None:
        if steps is None:
            raise InputError("a rollout needs controls u, or steps zero or more, but steps is None")
        return checked_count("steps", steps)
    if steps is not None:
        steps = checked_count("steps", steps)
    if len(u) != len(batch) + 2 or u[1:] != (*batch, model.nu):
        wanted = ", ".join(map(str, ("steps", *batch, model.nu)))
        raise InputError(f"u has shape {u}, but must have ({wanted}){controls_hint(model, u)}")
    if steps not in (None, u[0]):
        raise InputError(f"u has shape {u}, which is {u[0]} steps, but steps={steps}")
    return u[0]


def _check_force(model: Model, force: tuple[int, ...] | None, batch: tuple[int, ...], steps: int | None) -> bool:
    """Whether outside forces have a time axis."""
    always = (*batch, model.n_links, 6)
    if force is None or force == always:
        return False
    if steps is None:
        raise InputError(f"force has shape {force}, but must have {always}")
    if force != (steps, *always):
        raise InputError(
            f"force has shape {force}, but must have {(steps, *always)}, or {always} where it stays the same"
        )
    return True


def _check_param(model: Model, name: str, shape: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Whether a parameter has a value per environment."""
    checked_names("params", (name,), PARAMS, "parameter")
    shared = model.topology.shape_of(name)
    if shape == shared:
        return False
    if batch and shape == (*batch, *shared):
        return True
    more = f", or {(*batch, *shared)} per environment" if batch else " (q has no batch axis)"
    raise InputError(f'params["{name}"] has shape {shape}, but must have {shared}{more}')
