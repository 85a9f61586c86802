"""The simulator as a layer of PyTorch: tensors in, tensors out, exact gradients to everything that came in.

Numbers are computed in float64 on the CPU. float32 tensors are accepted: they are converted on the way in, and states
come back in the precision of q. Tensors on another device are moved, with one warning.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from .engine.gradients import Meaning
from .engine.run.call import Call, check_outputs_at, checked_call
from .engine.run.inputs import check_options, checked_hold
from .engine.run.outputs import OUTPUTS
from .engine.run.trajectory import EXACT, check_meaning
from .grafts.weights import blueprint_of, layers, with_layers
from .model.arguments import byte_count, check_flag, checked_count, checked_names
from .model.arrays import PARAMS, Model, known_parameters
from .model.errors import InputError

# shapes that a training loop meets again and again are checked once
REMEMBERED_CALLS = 64


class Motion(NamedTuple):
    """q (T+1, batch, nq), qd (T+1, batch, nv) and named outputs (T+1, batch, n_links, ...) of a rollout; further state
    (T+1, batch, n_more) where the model has any."""

    q: Tensor
    qd: Tensor
    outputs: Mapping[str, Tensor]
    more: Tensor | None = None


class Simulator(torch.nn.Module):
    """A model as a module without weights of its own; parameters to learn are passed in, by name."""

    def __init__(self, model: Model, *, threads: int | None = None, on_nan: str = "raise") -> None:
        super().__init__()
        check_options(model, threads, on_nan)
        self.model = model
        self._options: dict[str, Any] = {"threads": threads, "on_nan": on_nan}
        self._call = self._remembering()
        self._has_warned = False

    def _remembering(self) -> Callable[..., Call]:
        return functools.lru_cache(REMEMBERED_CALLS)(functools.partial(_call, self.model, **self._options))

    def __getstate__(self) -> dict[str, Any]:
        """A copy remembers its own calls."""
        return {name: value for name, value in self.__dict__.items() if name != "_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._call = self._remembering()

    def forward(
        self,
        q: Tensor,
        qd: Tensor,
        u: Tensor | None = None,
        force: Tensor | None = None,
        params: Mapping[str, Tensor] | None = None,
        more: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """q and qd one time step on; and more, further state (batch, n_more), where the model has any.

        q (batch, nq), qd (batch, nv), u (batch, nu), force (batch, n_links, 6) as MuJoCo's xfrc_applied; or all without
        batch. params maps names of the model's parameters to tensors, with a leading batch axis for a value per environment.
        """
        if torch.compiler.is_compiling():
            return self._forward_outside_the_graph(q, qd, u, force, params, more)
        return self._forward(q, qd, u, force, params, more)

    @torch.compiler.disable
    def _forward_outside_the_graph(self, *given: Any) -> tuple[Tensor, ...]:
        return self._forward(*given)

    def _forward(self, q: Tensor, qd: Tensor, u: Any, force: Any, params: Any, more: Any) -> tuple[Tensor, ...]:
        names, tensors = self._given(q, qd, u, force, params, more)
        found = _run(self._call(names, tuple(x.shape for x in tensors), is_step=True), tensors)
        if q.dtype is not torch.float64 or not q.is_cpu:
            return tuple(x.to(q.device, q.dtype) for x in found)
        return tuple(found)

    @torch.compiler.disable
    def rollout(
        self,
        q: Tensor,
        qd: Tensor,
        u: Tensor | None = None,
        *,
        force: Tensor | None = None,
        params: Mapping[str, Tensor] | None = None,
        steps: int | None = None,
        hold: int = 1,
        outputs: Sequence[str] = (),
        links: Sequence[str] | None = None,
        outputs_at: str = "every",
        only_last: bool = False,
        memory: int | str | None = None,
        gradient: Meaning = EXACT,
        more: Tensor | None = None,
    ) -> Motion:
        """Many steps under controls u (T, batch, nu), each held over `hold` steps, or without for `steps` steps.

        force (T, batch, n_links, 6), or without time axis where it stays the same. outputs of these links, or of all of them; at
        every state, or at the "last" alone, then without time axis, which costs less. only_last returns the last state alone;
        then memory, such as "16 MB", may bound what is kept for the way back. gradient: what derivatives mean, as in jg.rollout.
        """
        if checked_hold(hold, steps, u is not None) > 1 and isinstance(u, Tensor):
            u = u.repeat_interleave(hold, 0)
        names, tensors = self._given(q, qd, u, force, params, more)
        # the call is remembered by what it is asked, which must be of kinds that can be
        named = checked_names("outputs", outputs, OUTPUTS, "output")
        check_flag("only_last", only_last)
        check_outputs_at(outputs_at)
        byte_count(memory)
        check_meaning(gradient)
        steps = None if steps is None else checked_count("steps", steps)
        call = self._call(
            names,
            tuple(x.shape for x in tensors),
            steps=steps,
            outputs=named,
            links=None if links is None else checked_names("links", links, self.model.link_names, "link"),
            outputs_at=outputs_at,
            only_last=only_last,
            memory=memory,
            gradient=gradient,
        )
        found = [x.to(q.device, q.dtype) for x in _run(call, tensors)]
        named_outputs = dict(zip(call.outputs, found[len(call.state) :], strict=True))
        return Motion(found[0], found[1], named_outputs, found[2] if self.model.n_more else None)

    def centre_of_mass(self, motion: Motion, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Of all links together, (T+1, batch, 3), from a motion with the outputs link.position and link.rotation.

        params as they were given to the rollout.
        """
        if not {"link.position", "link.rotation"} <= set(motion.outputs):
            raise InputError('the centre of mass needs a rollout with outputs=("link.position", "link.rotation")')
        place, turn = motion.outputs["link.position"], motion.outputs["link.rotation"]
        own = {name: torch.tensor(self.model.params[name]) for name in ("link.mass", "link.com")}
        known = own | dict(params or {})
        mass, com = (known[name].to(place)[..., None] for name in ("link.mass", "link.com"))
        return (mass * (place + (turn @ com)[..., 0])).sum(-2) / mass.sum(-2)

    def _given(
        self, q: Any, qd: Any, u: Any, force: Any, params: Any, more: Any
    ) -> tuple[tuple[str, ...], list[Tensor]]:
        """Names and tensors of all that was given, in float64 on the CPU."""
        names, tensors = ["q", "qd"], [q, qd]
        if self.model.n_more:
            names.append("more")
            tensors.append(q.new_zeros(*q.shape[:-1], self.model.n_more) if more is None else more)
        for name, x in (("u", u), ("force", force)):
            if x is not None:
                names.append(name)
                tensors.append(x)
        if params is not None:
            params = _by_name(params)
            names += params
            tensors += params.values()
        for k, x in enumerate(tensors):
            if not isinstance(x, Tensor) or x.dtype is not torch.float64 or not x.is_cpu:
                tensors[k] = self._converted(names[k], x)
        return tuple(names), tensors

    def _converted(self, name: str, x: Any) -> Tensor:
        name = f'params["{name}"]' if name in PARAMS else name
        if not isinstance(x, Tensor):
            raise InputError(f"{name} must be a torch.Tensor, but is {type(x).__name__}")
        if x.dtype not in (torch.float64, torch.float32):
            raise InputError(f"{name} has dtype {x.dtype}, but must be torch.float64 or torch.float32")
        if x.device.type == "meta":
            raise InputError(f"{name} is on the meta device, where tensors have no values")
        if not x.is_cpu:
            self._warn_once(name, x.device)
        return x.to("cpu", torch.float64)

    def _warn_once(self, name: str, device: torch.device) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{name} is on {device}; the simulator runs on the CPU, tensors are moved there and back at every call",
                stacklevel=5,
            )


def _by_name(params: Any) -> dict[str, Any]:
    if not isinstance(params, Mapping):
        raise InputError(f"params must map names to tensors, but is {type(params).__name__}")
    return known_parameters(params)


def _call(model: Model, names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], **options: Any) -> Call:
    return checked_call(model, dict(zip(names, map(tuple, shapes), strict=True)), **options)


def _run(call: Call, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    # no public function tells whether torch.func is at work; Function.apply asks this one too
    if torch._C._are_functorch_transforms_active():
        return _MappedMotion.apply(call, *tensors)
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return _Motion.apply(call, *tensors)
    return _tensors(call.forward([x.detach().numpy() for x in tensors], keep=False)[0])


def _arrays(tensors: Sequence[Tensor | None]) -> list:
    """The same memory as NumPy arrays."""
    return [None if x is None else x.detach().numpy() for x in tensors]


def _tensors(arrays: Sequence) -> tuple[Tensor, ...]:
    return tuple(map(torch.from_numpy, arrays))


class _Motion(Function):
    """Forward and reverse in the core. Saving the tensors lets PyTorch notice when one is changed in place meanwhile."""

    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.call, ctx.arrays = call, [x.detach().numpy() for x in tensors]
        arrays, ctx.motion = call.forward(ctx.arrays, keep=True)
        found = _tensors(arrays)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *(found if call.steps is not None else ()))
        return found

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> tuple[Tensor | None, ...]:
        saved, needs = ctx.saved_tensors, _needs(ctx)
        if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            found = _Reverse.apply(ctx.call, needs, ctx.motion, *saved, *bars)
        else:
            found = _tensors(ctx.call.backward(ctx.arrays, (), _arrays(bars), needs, ctx.motion))
        return _in_place(ctx, needs, found)


def _needs(ctx: Any) -> tuple[str, ...]:
    """Inputs whose cotangent is asked for."""
    return tuple(n for n, is_needed in zip(ctx.call.inputs, ctx.needs_input_grad[1:], strict=True) if is_needed)


def _in_place(ctx: Any, needs: tuple[str, ...], found: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """One cotangent per argument of the function, the call itself included."""
    if len(needs) == len(ctx.call.inputs):
        return (None, *found)
    named = dict(zip(needs, found, strict=True))
    return (None, *(named.get(name) for name in ctx.call.inputs))


class _MappedMotion(Function):
    """The same under torch.func, whose transforms ask for this form: nothing is kept but tensors."""

    @staticmethod
    def forward(call: Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        return _tensors(call.forward(_arrays(tensors), keep=False)[0])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
        ctx.call = inputs[0]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[1:], *(output if ctx.call.steps is not None else ()))

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> tuple[Tensor | None, ...]:
        needs = _needs(ctx)
        return _in_place(ctx, needs, _Reverse.apply(ctx.call, needs, None, *ctx.saved_tensors, *bars))

    @staticmethod
    def vmap(info: Any, in_dims: tuple, call: Call, *tensors: Tensor) -> tuple:
        n, q = info.batch_size, _mapped_first(tensors[0], in_dims[1], info.batch_size)
        batch = q.shape[1] if call.is_batched else 1
        folded = _folded(call, call.inputs, tensors, in_dims[1:], n, batch)
        found = _MappedMotion.apply(call.mapped(n), *folded)
        return _unfolded(call, call.results, found, n, True), (0,) * len(found)


class _Reverse(Function):
    """The reverse as a function of its own, so that torch.func can map over it; it has no derivative."""

    @staticmethod
    def forward(call: Call, needs: tuple[str, ...], motion: Any, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        n, bars = len(call.inputs), tensors[-len(call.results) :]
        results = tensors[n : -len(call.results)]
        return _tensors(call.backward(_arrays(tensors[:n]), _arrays(results), _arrays(bars), needs, motion))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> tuple:
        raise NotImplementedError(
            "gradients of the simulator have no derivative of their own; for second derivatives use jg.hessian_product, "
            "or detach what you differentiate twice"
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple, call: Call, needs: tuple[str, ...], motion: Any, *tensors: Tensor | None
    ) -> tuple:
        n, count, dims = info.batch_size, len(call.inputs), in_dims[3:]
        batch = _mapped_first(tensors[0], dims[0], n).shape[1] if call.is_batched else 1
        inputs = _folded(call, call.inputs, tensors[:count], dims[:count], n, batch)
        rest = (call.results * 2)[-(len(tensors) - count) :]
        results = _folded(call, rest, tensors[count:], dims[count:], n, batch, True)
        found = _Reverse.apply(call.mapped(n), needs, None, *inputs, *results)
        return _unfolded(call, needs, found, n, False), (0,) * len(found)


def _mapped_first(x: Tensor | None, dim: int | None, count: int) -> Any:
    """With the axis that is mapped over in front; one value serves all where there was none."""
    if x is None:
        return None
    return x.movedim(dim, 0) if dim is not None else x.expand(count, *x.shape)


def _folded(
    call: Call, names: Sequence[str], tensors: Sequence, dims: Sequence, count: int, batch: int, is_result: bool = False
) -> list:
    fronted = [_mapped_first(x, dim, count) for x, dim in zip(tensors, dims, strict=True)]
    return [
        None if x is None else call.folded(torch, name, x, batch, is_result)
        for name, x in zip(names, fronted, strict=True)
    ]


def _unfolded(call: Call, names: Sequence[str], tensors: Sequence, count: int, is_result: bool) -> tuple[Tensor, ...]:
    return tuple(call.unfolded(name, x, count, is_result) for name, x in zip(names, tensors, strict=True))


# networks of a graft ------------------------------------------------------------------------------------------------------


class Sin(torch.nn.Module):
    """The sine, which torch has as a function alone."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)


# Softplus of torch is a straight line from a threshold on; ours is not, and from 40 on doubles do not see it
MODULES: Mapping[str, Callable[[], torch.nn.Module]] = {
    "linear": torch.nn.Identity, "tanh": torch.nn.Tanh, "elu": torch.nn.ELU, "relu": torch.nn.ReLU,
    "softplus": functools.partial(torch.nn.Softplus, threshold=40.0), "sin": Sin, "sigmoid": torch.nn.Sigmoid,
}  # fmt: skip


def to_module(model: Model, graft: int = 0, network: int = 0) -> torch.nn.Sequential:
    """A network of a graft as torch.nn.Linear and activations, with its weights, in float64: what it says of its inputs is what the
    engine's network says. The order of the inputs is `model.topology.grafts[graft].seen[network]`."""
    parts: list[torch.nn.Module] = []
    for W, bias in layers(model, graft, network):
        linear = torch.nn.Linear(W.shape[1], W.shape[0], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(W))
            linear.bias.copy_(torch.from_numpy(bias))
        parts += [linear, MODULES[model.topology.grafts[graft].activation]()]
    return torch.nn.Sequential(*parts[:-1])


def from_module(model: Model, module: torch.nn.Sequential, graft: int = 0, network: int = 0) -> Model:
    """The same model with the weights of a module in one network. It must be built as `to_module` builds them: another activation
    is an error, not another network."""
    linears = _linears(model, module, graft, network)
    pairs = [(x.weight.detach().cpu().double().numpy(), x.bias.detach().cpu().double().numpy()) for x in linears]
    return with_layers(model, pairs, graft, network)


def weights_of(model: Model, modules: Sequence[torch.nn.Sequential], graft: int = 0) -> Tensor:
    """The parameter "graft.weight" with the weights of modules in the networks of one graft, in order; the rest is the model's own.
    Gradients go back to the modules: pass it to the Simulator as params={"graft.weight": ...} and train them as any other."""
    blueprint = blueprint_of(model, graft, 0)
    firsts = list(dict.fromkeys(blueprint.first_weights))  # networks that share weights count once
    if len(modules) != len(firsts):
        raise InputError(f"graft {graft} has weights for {len(firsts)} networks, but {len(modules)} modules were given")
    own = torch.tensor(model.params["graft.weight"])
    found, at = [], 0
    for first, module in zip(firsts, modules, strict=True):
        linears = _linears(model, module, graft, blueprint.first_weights.index(first))
        found += [own[at:first], *(x for one in linears for x in (one.weight.T.reshape(-1), one.bias))]
        at = first + blueprint.n_weights
    return torch.cat([x.to("cpu", torch.float64) for x in [*found, own[at:]]])


def _linears(model: Model, module: Any, graft: int, network: int) -> list[torch.nn.Linear]:
    """Those of a module that is what `to_module` would build."""
    blueprint, parts = blueprint_of(model, graft, network), list(module)
    sizes, kind = list(itertools.pairwise(blueprint.sizes)), type(MODULES[blueprint.activation]())
    wanted = f", {kind.__name__}, ".join(f"Linear({a}, {b})" for a, b in sizes)
    is_right = len(parts) == 2 * len(sizes) - 1 and all(isinstance(one, kind) for one in parts[1::2])
    linears = [one for one in parts[::2] if isinstance(one, torch.nn.Linear) and one.bias is not None]
    if not is_right or [(one.in_features, one.out_features) for one in linears] != sizes:
        raise InputError(f"the network is {wanted}, but the module is {', '.join(map(str, parts))}")
    return linears
