"""The derivative of the mean of motions that start, and are driven, a little elsewhere.

Copies of every environment are perturbed by normal noise z, in pairs +z and -z, and run beside each other in one batch. With L what
the cotangents of the loss say of a motion, the derivative of the mean of L has two estimates:

    of first order    the mean of the exact gradients of the copies. It has little noise, but does not see jumps: what a copy gains
                      by touching where another one does not is in none of their gradients
    of zeroth order   the mean of z (L(+z) - L(-z)) / 2 sigma. It sees everything, through noise that grows with the number of
                      things that are perturbed. What the first order explains of L is taken out of it first, and added to the
                      mean, so that only what is left is noisy

Both are taken, and mixed so that the square error of the mix is least: first order has the share v0 / (v0 + v1 + b^2), where v0 and
v1 are the measured variances of the two means, and b^2 is by how much they differ beyond that, the square bias of the first (an
idea of Suh et al. 2022). The share is in `Gradient.report`.

Noise is the same for every environment and every call: it depends on `seed` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import checked_count, checked_names, checked_number
from ...model.errors import InputError
from ...model.renamed import ByName
from ..run.tangent_coordinates import displaced
from .exact import Exact
from .meaning import Meaning
from .noise import NAMES, Copies, all_of, mean_of, said, share_of_first
from .segments import Bars, Tangents, with_batch

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

MOST = 4096  # copies at a time


@dataclass(frozen=True)
class Randomised(Meaning):
    """Averaged over `samples` perturbed copies (an even number). sigma: the noise's standard deviation, by name: q (m, rad), qd
    (m/s, rad/s), u (as controls are) and force (N, N m); one number is that of q, qd and u. hold: noise of controls is held over
    so many steps. What is not perturbed, parameters among it, has the first order alone."""

    sigma: float | Mapping[str, float] | tuple[tuple[str, float], ...]
    samples: int = 64
    seed: int = 0
    hold: int = 1

    def __post_init__(self) -> None:
        for name, low in (("samples", 2), ("seed", 0), ("hold", 1)):
            checked_count(name, getattr(self, name), low)
        if self.samples % 2:
            raise InputError(f"samples must be even, for copies come in pairs, but is {self.samples}")
        given = self.sigma
        if isinstance(given, Mapping):
            checked_names("sigma", tuple(given), NAMES)
            given = tuple(sorted(given.items()))
        elif not isinstance(given, tuple):
            given = tuple((name, given) for name in ("q", "qd", "u"))
        for name, value in given:
            checked_number(f'sigma["{name}"]', value, 0.0, is_above=True)
        # kept as pairs, which have a hash
        object.__setattr__(self, "sigma", given)

    @property
    def sigmas(self) -> dict[str, float]:
        """By name."""
        return dict(self.sigma)  # type: ignore[arg-type]

    def _parts(self, motion: Trajectory) -> list[slice]:
        batch, at_once = motion.run.inputs.batch, max(1, MOST // self.samples)
        return [slice(k, min(batch, k + at_once)) for k in range(0, batch, at_once)]

    # reverse ---------------------------------------------------------------------------------------------------------------

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """`report["first_order"]` holds, by name, the share of the first order per environment, and `report["lost"]` how many
        copies diverged: they and their pairs are left out."""
        from ..run.trajectory import Gradient

        if not motion.run.inputs.batch or not motion.steps:
            return Exact().pulled_back(motion, bars, wrt)
        wide = bars.over_time(motion)
        parts = [self._part(motion, wide, wrt, some) for some in self._parts(motion)]
        axes = dict.fromkeys((*NAMES, "lost"), 0) | {"u": 1, "force": int(bool(motion.run.inputs.force_step))}
        means = all_of([part[0] for part in parts], axes)
        shares = all_of([part[1] for part in parts], dict.fromkeys(axes, 0))
        lost = motion.run.unbatched(shares.pop("lost"), 0)
        report = {"first_order": {n: motion.run.unbatched(share, 0) for n, share in shares.items()}, "lost": lost}
        shown = {n: motion.run.unbatched(mean, axes[n]) for n, mean in means.items()}
        params = {
            n: sum(part[2][n] for part in parts)
            if motion.model.is_shared(n)
            else np.concatenate([p[2][n] for p in parts])
            for n in parts[0][2]
        }
        return Gradient(**shown, params=ByName(params), report=report)

    def _part(self, motion: Trajectory, bars: Bars, wrt: Sequence[str], some: slice) -> tuple[dict, dict, dict]:
        """Means and shares of some environments by name, and cotangents of parameters."""
        many = Copies(self, motion, some, tuple(bars.outputs))
        own = self._bars(many, bars)
        back = Exact().pulled_back(many.run, own, wrt)
        firsts = {n: many.first(n, getattr(back, n)) for n in NAMES if getattr(back, n) is not None}
        rise = self._unexplained(many, said(many, own), firsts)
        means, shares = {}, {"lost": (many.weights == 0).sum(1) * 2}
        for name, bar in firsts.items():
            means[name], share = self._mean(many, name, bar, rise)
            if share is not None:
                shares[name] = share
        return means, shares, {n: self._of_copies(many, n, bar) for n, bar in back.params.items()}

    def _unexplained(self, many: Copies, values: np.ndarray, firsts: Mapping[str, np.ndarray]) -> np.ndarray:
        """(environments, pairs): half of what the loss differs by between the two of a pair, less what the mean gradient says."""
        rise = 0.5 * (values[..., 0] - values[..., 1])
        for name in many.noise:
            if name in firsts:
                slope = mean_of(self._inwards(many, name, firsts[name]), many.weights)
                way = many.sigma[name] * many.noise[name][None] * slope[:, None]
                rise = rise - way.reshape(*way.shape[:2], -1).sum(-1)
        return rise

    def _inwards(self, many: Copies, name: str, bar: np.ndarray) -> np.ndarray:
        """Of first order, in coordinates of noise, (environments, pairs, ...)."""
        return many.paired(many.inwards(name, bar, many.run.run.inputs.q)).mean(2)

    def _bars(self, many: Copies, bars: Bars) -> Bars:
        """Cotangents for every copy; none for those that do not count."""
        keep = np.repeat(many.weights, 2, 1).reshape(-1)

        def own(bar: np.ndarray) -> np.ndarray:
            return many.repeated(bar, 1) * keep.reshape(-1, *(1,) * (bar.ndim - 2))

        return Bars(own(bars.q), own(bars.qd), True, {n: own(b) for n, b in bars.outputs.items()})

    def _mean(self, many: Copies, name: str, bar: np.ndarray, rise: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Of one input, with the axes of the user's arrays, and the share of the first order, if there is another."""
        q = many.motion.run.inputs.q[many.some]
        inwards = self._inwards(many, name, bar)
        if name not in many.noise:
            share, mean = None, mean_of(many.paired(bar).mean(2), many.weights)
        else:
            z = many.noise[name][None] / many.sigma[name]
            rest = rise.reshape(*rise.shape, *(1,) * (z.ndim - 2)) * z
            zeroth = mean_of(inwards, many.weights)[:, None] + rest
            share = share_of_first(inwards, zeroth, many.weights)
            wide = share.reshape(-1, *(1,) * (bar.ndim - 1))
            # of q in tangent coordinates: copies start elsewhere
            first = mean_of(inwards, many.weights) if name == "q" else mean_of(many.paired(bar).mean(2), many.weights)
            first = many.told(name, first, q) if name == "q" else first
            mean = first + (1.0 - wide) * many.told(name, mean_of(rest, many.weights), q)
        return (np.moveaxis(mean, 0, 1) if many.has_time(name) else mean), share

    def _of_copies(self, many: Copies, name: str, bar: np.ndarray) -> np.ndarray:
        """Of a parameter: the mean over copies, per environment or summed over them."""
        if not many.motion.model.is_shared(name):
            return mean_of(many.paired(bar).mean(2), many.weights)
        # shared by all copies of all environments: a sum over those that count, which differ in number where some were lost
        return bar / (2.0 * np.maximum(many.weights.sum(1), 1.0).mean())

    # forward mode -----------------------------------------------------------------------------------------------------------

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """What is perturbed by a mix for the whole motion, the rest by first order."""
        if not motion.run.inputs.batch or not motion.steps:
            return Exact().pushed_forward(motion, dots, params, outputs)
        wide = {n: np.asarray(d, float) for n, d in with_batch(motion, dots).items() if d is not None}
        parts = [self._tangents(motion, wide, params, outputs, some) for some in self._parts(motion)]
        q, qd, *seen = (motion.run.unbatched(np.concatenate(x, 1)) for x in zip(*parts, strict=True))
        return q, qd, dict(zip(outputs, seen, strict=True))

    def _tangents(
        self,
        motion: Trajectory,
        dots: Mapping[str, np.ndarray],
        params: Mapping[str, Any],
        outputs: tuple[str, ...],
        some: slice,
    ) -> list[np.ndarray]:
        """Of q, qd and outputs, (T+1, environments, ...)."""
        many = Copies(self, motion, some, outputs)
        noisy = {n: d for n, d in dots.items() if n in many.noise}
        rest = {n: d for n, d in dots.items() if n not in many.noise}
        first = self._slopes(many, noisy, {}, outputs)
        along = sum((self._along(many, n, d) for n, d in noisy.items()), np.zeros(many.weights.shape))
        found = []
        for value, slope in zip(
            (*many.run.run.states(), *(many.run.run.outputs[n] for n in outputs)), first, strict=True
        ):
            x = many.paired(np.moveaxis(value, 1, 0))
            zeroth = 0.5 * (x[:, :, 0] - x[:, :, 1]) * along.reshape(*along.shape, *(1,) * (slope.ndim - 2))
            share = share_of_first(slope, zeroth, many.weights).reshape(-1, *(1,) * (slope.ndim - 2))
            found.append(share * mean_of(slope, many.weights) + (1.0 - share) * mean_of(zeroth, many.weights))
        if rest or params:
            more = self._slopes(many, rest, params, outputs)
            found = [a + mean_of(b, many.weights) for a, b in zip(found, more, strict=True)]
        return [np.moveaxis(x, 0, 1) for x in found]

    def _along(self, many: Copies, name: str, dot: np.ndarray) -> np.ndarray:
        """(environments, pairs): how far noise goes along a direction, over its variance."""
        own = many.first(name, np.take(dot, range(many.some.start, many.some.stop), int(many.has_time(name))))
        way = many.direction(name, own, many.motion.run.inputs.q[many.some])
        z = many.noise[name][None] * way[:, None]
        return z.reshape(*z.shape[:2], -1).sum(-1) / many.sigma[name]

    def _slopes(
        self, many: Copies, dots: Mapping[str, np.ndarray], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> list[np.ndarray]:
        """Of first order, (environments, pairs, T+1, ...), the mean of each pair."""
        wide = {n: many.repeated(d, int(many.has_time(n))) for n, d in dots.items()}
        if "q" in wide:
            # the same turn, from where the copy starts
            turn = many.direction("q", wide["q"], many.repeated(many.motion.run.inputs.q, 0))
            wide["q"] = displaced(many.run.model, many.run.run.inputs.q, turn)
        own = {n: v if many.motion.model.is_shared(n) else many.repeated(np.asarray(v), 0) for n, v in params.items()}
        dq, dqd, seen = Exact().pushed_forward(many.run, wide, own, outputs)
        return [many.paired(np.moveaxis(x, 1, 0)).mean(2) for x in (dq, dqd, *(seen[n] for n in outputs))]
