"""Parameters to be found: entries of a model's params by name, as a vector x without units that a solver may move freely.

An entry is a plain number (x = value / scale), the logarithm of a positive one, or the whole inertia of a link. The latter
has ten numbers, the log-Cholesky form of its pseudo-inertia (Rucker and Wensing 2022, "Smooth parameterization of rigid-body
inertia"): whatever they are, a body with that mass, centre and inertia exists.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import HIGHEST, NOT_NEGATIVE, PARAMS, Model, known_parameter
from .checks import triangle_violation
from .errors import InputError
from .names import unknown
from .rows import own_rows

INERTIA = ("link.mass", "link.com", "link.inertia")
LOG_CHOLESKY = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
# an inertia at the edge of what a body can have (a point, a rod) has no log-Cholesky form: it starts this far inside
INSIDE = 1e-6


@dataclass(frozen=True)
class Entry:
    """Which numbers of a parameter are unknown.

    name: such as "pair.friction". rows: names (patterns allowed) of links, joints, pairs, actuators, tendons, shapes; None for
    all that were described (`model.rows(name)`). columns: which numbers of a row. bounds: in the units of the parameter. scale: a
    typical size. log: the number is positive and searched by its logarithm. tied: one unknown for all rows.
    """

    name: str
    rows: str | Sequence[str] | None = None
    columns: int | Sequence[int] | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)
    scale: float = 1.0
    log: bool = False
    tied: bool = False


@dataclass(frozen=True)
class Inertia:
    """Mass, centre of mass and inertia of links (names, patterns allowed), ten unknowns each, always those of a body."""

    rows: str | Sequence[str]


class _Numbers:
    """One Entry, resolved: flat places in the parameter, one list for each unknown."""

    def __init__(self, model: Model, entry: Entry) -> None:
        entry = replace(entry, name=known_parameter(entry.name))
        self.entry, self.shape = entry, model.topology.shape_of(entry.name)
        of_world = entry.name.startswith("world.")  # one row, whatever its shape
        width = int(np.prod(self.shape if of_world else self.shape[1:]))
        rows, labels = _rows(model, entry.name, entry.rows)
        columns = range(width) if entry.columns is None else np.atleast_1d(entry.columns)
        if width and max(columns) >= width:
            raise InputError(f'"{entry.name}" has {width} numbers per row, but columns names {max(columns)}')
        tail = [f"[{c}]" if width > 1 else "" for c in columns]
        places = np.array([[r * width + c for c in columns] for r in rows])
        if entry.tied:
            self.places, self.names = list(places.T), [f"{entry.name}{t}" for t in tail]
        else:
            self.places = [np.array([p]) for p in places.ravel()]
            self.names = [
                f"{entry.name}[{label}]{t}" if label else f"{entry.name}{t}" for label in labels for t in tail
            ]
        self.n = len(self.names)
        self.current = np.array([model.params[entry.name].ravel()[p[0]] for p in self.places])
        low, high = self.limits = _natural(entry)
        if (self.current < low).any() or (self.current > high).any():
            k = int(np.argmax((self.current < low) | (self.current > high)))
            raise InputError(f"{self.names[k]} starts at {self.current[k]:g}, outside its bounds {self.limits}")
        if entry.log and (self.current <= 0).any():
            raise InputError(f"{self.names[int(np.argmin(self.current))]} is not positive, so that it has no logarithm")

    def _forward(self, value: Any) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.maximum(value, 0.0)) if self.entry.log else np.asarray(value) / self.entry.scale

    @property
    def start(self) -> np.ndarray:
        return self._forward(self.current)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = (np.full(self.n, self._forward(b)) for b in self.limits)
        return low, high

    def physical(self, x: np.ndarray) -> np.ndarray:
        """Values (batch, n) of x (batch, n)."""
        return np.exp(x) if self.entry.log else x * self.entry.scale

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Of the values (n,), by x (n,), a diagonal."""
        return np.diag(np.exp(x) if self.entry.log else np.full(self.n, self.entry.scale))

    def put(self, x: np.ndarray, found: dict[str, np.ndarray]) -> None:
        flat = found[self.entry.name].reshape(len(x), -1)
        for k, place in enumerate(self.places):
            flat[:, place] = self.physical(x)[:, k : k + 1]

    def put_directions(self, x: np.ndarray, first: int, found: dict[str, np.ndarray]) -> None:
        """d value / d x_k in row first + k of found (directions, ...)."""
        flat, slopes = found[self.entry.name].reshape(len(found[self.entry.name]), -1), np.diag(self.slope(x))
        for k, place in enumerate(self.places):
            flat[first + k, place] = slopes[k]

    touches = property(lambda self: (self.entry.name,))

    def owned(self, model: Model) -> list[tuple[str, int]]:
        """Parameters and flat places that this part sets."""
        return [(self.entry.name, int(p)) for place in self.places for p in place]


def _natural(entry: Entry) -> tuple[float, float]:
    """The bounds of an entry, within what it can be at all."""
    low, high = entry.bounds
    return (max(low, 0.0) if entry.name in NOT_NEGATIVE else low), min(high, HIGHEST.get(entry.name, high))


class _Body:
    """The inertia of one link in log-Cholesky form."""

    touches = INERTIA

    def __init__(self, model: Model, row: int) -> None:
        self.row, link = row, model.link_names[row]
        self.names, self.n = [f"inertia[{link}].{part}" for part in LOG_CHOLESKY], 10
        self.physical_names = [f"link.mass[{link}]", *(f"link.com[{link}][{i}]" for i in range(3)),
                               *(f"link.inertia[{link}][{i}]" for i in range(6))]  # fmt: skip
        values = [model.params[name][row] for name in INERTIA]
        self.start = log_cholesky(*values)
        self.bounds = np.full(10, -np.inf), np.full(10, np.inf)

    def physical(self, x: np.ndarray) -> np.ndarray:
        """(batch, 10): mass, centre, inertia."""
        return np.array([np.concatenate([np.atleast_1d(p) for p in from_log_cholesky(row)]) for row in x])

    def slope(self, x: np.ndarray) -> np.ndarray:
        # complex steps: the form is made of products and exponentials, so that the slope is exact
        columns = [np.concatenate([np.atleast_1d(p) for p in from_log_cholesky(x + 1e-30j * e)]) for e in np.eye(10)]
        return np.imag(np.array(columns)).T / 1e-30

    def owned(self, model: Model) -> list[tuple[str, int]]:
        widths = (PARAMS[name] for name in INERTIA)
        return [(name, self.row * w + c) for name, w in zip(INERTIA, widths, strict=True) for c in range(w)]

    def put(self, x: np.ndarray, found: dict[str, np.ndarray]) -> None:
        values = self.physical(x)
        for name, part in zip(INERTIA, (values[:, 0], values[:, 1:4], values[:, 4:]), strict=True):
            found[name][:, self.row] = part

    def put_directions(self, x: np.ndarray, first: int, found: dict[str, np.ndarray]) -> None:
        slopes = self.slope(x).T
        for name, part in zip(INERTIA, (slopes[:, 0], slopes[:, 1:4], slopes[:, 4:]), strict=True):
            found[name][first : first + 10, self.row] = part


class Unknowns:
    """Entries of a model's parameters as one vector x (n,): names, start, bounds, and the way to and fro."""

    def __init__(self, model: Model, entries: Sequence[Entry | Inertia]) -> None:
        if not entries:
            raise InputError("name at least one parameter to be found")
        if model.batch is not None:
            raise InputError("the model has parameters per environment: take model.environment(k)")
        self.model = model
        self.parts: list[_Numbers | _Body] = []
        for entry in entries:
            if isinstance(entry, Inertia):
                rows, _ = _rows(model, "link.mass", entry.rows)
                self.parts += [_Body(model, row) for row in rows]
            else:
                self.parts.append(_Numbers(model, entry))
        self._refuse_doubles()
        self.names = [name for part in self.parts for name in part.names]
        self.physical_names = [n for part in self.parts for n in getattr(part, "physical_names", part.names)]
        self.n = len(self.names)
        self.first = np.cumsum([0, *(part.n for part in self.parts)])
        self.touched = sorted({name for part in self.parts for name in part.touches})
        self.start = np.concatenate([part.start for part in self.parts])
        lows, highs = zip(*(part.bounds for part in self.parts), strict=True)
        self.bounds = np.concatenate(lows), np.concatenate(highs)

    def _refuse_doubles(self) -> None:
        seen: set[tuple[str, int]] = set()
        for part in self.parts:
            own = set(part.owned(self.model))
            for name, place in own & seen:
                raise InputError(f'"{name}" is named twice at its entry {place}: a number can be one unknown only')
            seen |= own

    def _each(self, x: np.ndarray):
        return ((part, x[..., a : a + part.n], int(a)) for part, a in zip(self.parts, self.first, strict=False))

    def physical(self, x: np.ndarray) -> np.ndarray:
        """The numbers that x (n,) stands for, in the units of the parameters; names are physical_names."""
        return np.concatenate([part.physical(own[None])[0] for part, own, _ in self._each(np.asarray(x))])

    def slope(self, x: np.ndarray) -> np.ndarray:
        """d physical / d x, (n, n)."""
        out = np.zeros((self.n, self.n))
        for part, own, a in self._each(np.asarray(x)):
            out[a : a + part.n, a : a + part.n] = part.slope(own)
        return out

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters by name for points x (batch, n), with a leading axis."""
        found = {name: np.repeat(self.model.params[name][None], len(x), axis=0) for name in self.touched}
        for part, own, _ in self._each(x):
            part.put(own, found)
        return found

    def is_physical(self, x: np.ndarray) -> np.ndarray:
        """Of points x (batch, n), whether bodies with such inertias exist."""
        if "link.inertia" not in self.touched:
            return np.ones(len(x), bool)
        return np.asarray(~(triangle_violation(self.values(x)["link.inertia"]) > 0).any(-1))

    def model_at(self, x: np.ndarray) -> Model:
        """The model with the parameters of one point x (n,)."""
        return self.model.replace({name: value[0] for name, value in self.values(np.asarray(x)[None]).items()})

    def directions(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters' changes by name, (n, ...): row k is that for a unit change of x_k, at x (n,)."""
        found = {name: np.zeros((self.n, *self.model.params[name].shape)) for name in self.touched}
        for part, own, a in self._each(x):
            part.put_directions(own, a, found)
        return found

    def pull(self, x: np.ndarray, params_bar: Mapping[str, np.ndarray]) -> np.ndarray:
        """Cotangents (..., n) of x (n,) from those of the parameters, each (..., *shape)."""
        total = 0.0
        for name, rows in self.directions(x).items():
            bar = params_bar[name]
            lead = bar.shape[: bar.ndim - rows.ndim + 1]
            total = total + bar.reshape(*lead, -1) @ rows.reshape(self.n, -1).T
        return np.asarray(total)


def _rows(model: Model, name: str, wanted: str | Sequence[str] | None) -> tuple[list[int], list[str]]:
    """Rows of a parameter and their names, for names or patterns."""
    kind = name.split(".")[0]
    if kind == "world":
        if wanted is not None:
            raise InputError(f'"{name}" has no rows to choose from')
        return [0], [""]
    names = getattr(model, f"{kind}_names")
    if wanted is None:
        own = own_rows(model.topology, name)
        return own, [names[r] for r in own]
    rows: list[int] = []
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        # a name may hold brackets of its own
        hits = [r for r, n in enumerate(names) if n == pattern or fnmatch.fnmatchcase(n, pattern)]
        if not hits:
            raise InputError(unknown(kind, pattern, model.rows(name)))
        rows += [r for r in hits if r not in rows]
    return rows, [names[r] for r in rows]


def from_log_cholesky(x: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass, centre (3,), inertia about the centre (6,: xx xy xz yy yz zz) of alpha, d, s, t (Rucker and Wensing 2022:
    the second moment about the origin is U U^T, of which the centre takes away t t^T)."""
    alpha, d1, d2, d3, s12, s23, s13 = x[:7]
    mass, e = np.exp(2 * alpha), np.exp(np.array([d1, d2, d3]))
    zero = 0 * alpha
    U = np.array([[e[0], s12, s13], [zero, e[1], s23], [zero, zero, e[2]]])
    second = mass * (U @ U.T)
    inertia = np.trace(second) * np.eye(3) - second
    return mass, x[7:10], inertia[(0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]


def log_cholesky(mass: Any, com: Any, inertia: Any) -> np.ndarray:
    """The ten numbers of a body, the inverse of from_log_cholesky."""
    if not mass > 0:
        raise InputError(f"a body without mass ({float(mass):g}) has no log-Cholesky form")
    xx, xy, xz, yy, yz, zz = inertia
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = (0.5 * np.trace(I) * np.eye(3) - I) / mass
    values, vectors = np.linalg.eigh(second)
    least = INSIDE * max(float(values.max()), 1e-12)
    second = (vectors * np.maximum(values, least)) @ vectors.T
    # upper triangular U with U U^T = second: the lower one of the matrix turned about both diagonals
    U = np.linalg.cholesky(second[::-1, ::-1])[::-1, ::-1]
    return np.array([0.5 * np.log(mass), *np.log(np.diag(U)), U[0, 1], U[1, 2], U[0, 2], *np.asarray(com)], float)
