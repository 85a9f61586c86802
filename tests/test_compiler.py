"""The compiler on its own: graphs, adjoints, tangents, packs, elementary functions, cache; and the no-compiler mode."""

import contextlib
import math
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache as memoized
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.compiler import cache
from jointgrad.compiler import elementary as el
from jointgrad.compiler import kernel as kernel_module
from jointgrad.compiler.field import INTEGERS, SCALAR, Frame, Schema, plain_tables
from jointgrad.compiler.ingredients import of_kernel
from jointgrad.compiler.kernel import Library, accumulate, kernel, sweep
from jointgrad.compiler.reverse import adjoint, tangent
from jointgrad.compiler.trace import Graph, flatten, shaped_like, traced
from jointgrad.engine.kernels import workspace
from jointgrad.engine.run import runtime

# a small problem: operators, a sweep, and kernels that call each other ------------------------------------------------


@traced
def smooth(a, b):
    """Every kind of operation, away from anything singular."""
    c, s = el.sinc_of_square(a[0] * a[0] + b[0] * b[0])
    n = el.safe_norm(a)
    return (
        el.sin(a[0]) * b[1] - a[1] * el.cos(b[0]) + c,
        el.exp(a[2] * 0.5) * el.tanh(b[0]) - el.safe_div(a[1], n) / 3.0,
        el.atan2(a[1], b[1]) + n * s,
        el.select(a[0] > b[0], a[0] * b[1], el.clamp(b[1], -0.5, 0.5) * a[2]),
    )


smooth_adjoint = adjoint(smooth, "a b")


@traced
def plus_each(y, t):
    return tuple(x + t for x in y)


@traced
def at_risk(v, a, b):
    """Every guarded primitive; all of them singular where all arguments vanish."""
    z = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    turn = el.angle_over_sine(1.0 - a, z)
    return el.safe_norm(v), el.safe_div(a, b), el.safe_root(b), el.atan2(a, b), *el.sinc_of_square(z), turn


at_risk_adjoint = adjoint(at_risk, "v a b")


@traced
def elementary(x, y):
    return el.sin(x), el.cos(x), el.exp(x), el.tanh(x), el.atan2(y, x)


@sweep
def add_up(frame, i):
    work = frame.work
    for k in range(4):
        accumulate(work.total, frame.tree.target[i], work.y[i][k])


@kernel
def forward(frame):
    work = frame.work
    for i in range(frame.tree.n):
        work.y[i] = smooth(work.a[i], work.b[i])
        add_up(frame, i)


@kernel
def reverse(frame, bar):
    tree, work = frame.tree, frame.work
    for i in range(tree.n - 1, -1, -1):
        a, b = smooth_adjoint(work.a[i], work.b[i], plus_each(bar.work.y[i], bar.work.total[tree.target[i]]))
        accumulate(bar.work.a, i, a)
        accumulate(bar.work.b, i, b)


@kernel
def there_and_back(frame, bar):
    forward(frame)
    reverse(frame, bar)


@kernel
def guarded(frame, bar):
    work = frame.work
    for i in range(frame.tree.n):
        work.risk[i] = at_risk(work.a[i], work.b[i][0], work.b[i][1])
        v, a, b = at_risk_adjoint(work.a[i], work.b[i][0], work.b[i][1], bar.work.risk[i])
        bar.work.a[i] = v
        bar.work.b[i] = (a, b)


@kernel
def functions(frame):
    work = frame.work
    for i in range(frame.tree.n):
        work.values[i] = elementary(work.b[i][0], work.b[i][1])


WORK = dict(a=3, b=2, y=4, total=1, risk=7, values=5)
TABLES = dict(tree=dict(n=SCALAR, target=INTEGERS), work=WORK, work_bar=dict(a=3, b=2, y=4, total=1, risk=7))
KERNELS = (forward, reverse, there_and_back, guarded, functions)
SCHEMA = Schema("compiler_test", TABLES, tuple(k.__name__ for k in KERNELS))
FIELDS = [field for field in SCHEMA.slots if SCHEMA.is_pack(field)]
ROWS, ENVS = 5, 8
INPUTS, RESULTS = (
    ("work.a", "work.b", "work_bar.y", "work_bar.total"),
    ("work.y", "work.total", "work_bar.a", "work_bar.b"),
)
TARGET = [3, 1, 4, 1, 0]


@memoized
def library(lanes, parts):
    return Library(SCHEMA, KERNELS, lanes, parts)


def run(name, given, lanes=4, parts=1):
    """A compiled kernel on fields of shape (rows, width, parts, envs), a pack of environments at a time."""
    rows = next(iter(given.values())).shape[0]
    envs = next(iter(given.values())).shape[-1]
    found = []
    for first in range(0, envs, lanes):
        integers = {"tree.n": rows, "tree.target": np.resize(TARGET, rows)}
        frame = Frame(SCHEMA, dict.fromkeys(FIELDS, rows), integers, lanes, parts)
        for field, values in given.items():
            frame.table(field)[:] = values[..., first : first + lanes]
        library(lanes, parts).attach(frame, name)()
        found.append(frame)
    return {field: np.concatenate([f.table(field) for f in found], axis=-1) for field in FIELDS}


def run_plain(kernel_, given, env):
    """The same kernel as Python, for one environment."""
    tables = plain_tables(SCHEMA, dict.fromkeys(FIELDS, ROWS), {"tree.n": ROWS, "tree.target": TARGET}, {})
    for field, values in given.items():
        table, name = field.split(".")
        rows = values[:, :, 0, env].tolist()
        getattr(getattr(tables, table), name)[:] = [tuple(row) if len(row) > 1 else row[0] for row in rows]
    kernel_(tables, *([tables.bar] if "bar" in kernel_.views else []))
    return tables


def drawn(*fields, parts=1):
    rng = np.random.default_rng(0)
    return {field: rng.normal(size=(ROWS, SCHEMA.width(field), parts, ENVS)) for field in fields}


# the graph ------------------------------------------------------------------------------------------------------------


def n_operations(fn, n_inputs):
    graph = Graph()
    fn(*graph.inputs(n_inputs))
    return len(graph.order) - n_inputs


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (lambda x, y: x * 0.0 + y * 1.0 + 0.0, 0),
        (lambda x, y: (x - 0.0) * 1 - 0 * y, 0),
        (lambda x, y: -1.0 * -x, 1),
        (lambda x, y: (x * (2.0 * 3.0 + 1.0), -1.0 * x, 0.0 - x), 2),
        (lambda x, y: (x * y + x * y, el.sin(x * y)), 3),
        (lambda x, y: (el.sin(x) + el.cos(x), el.sin(x) - el.cos(x)), 4),
        (lambda x, y: (el.select(x > y, x, y), el.select(x > y, y, x)), 3),
    ],
    ids=["zeros and ones", "integers too", "sign twice", "constants", "a product", "functions", "a comparison"],
)
def test_constants_fold_and_repeats_vanish(fn, count):
    assert n_operations(fn, 2) == count


def test_adjoint_of_a_product_is_two_products():
    graph = Graph()
    adjoint(traced(lambda x, y: x * y), "x y")(*graph.inputs(3))
    assert [node.op for node in graph.order] == ["input"] * 3 + ["mul"] * 2


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x / y,
        lambda x, y: 1.0 / x,
        lambda x, y: x if x > y else y,
        lambda x, y: max(x, y),
        lambda x, y: x if x > 0.0 and y > 0.0 else y,
        lambda x, y: x if x == 0.0 else y,
        lambda x, y: x if x != y else y,
        lambda x, y: x if x in (1.0, 2.0) else y,
        lambda x, y: abs(x),
        lambda x, y: math.sin(x),
    ],
    ids=["division", "reciprocal", "if", "max", "and", "equal", "unequal", "in", "abs", "math"],
)
def test_what_cannot_be_traced_is_refused(fn):
    with pytest.raises(TypeError):
        fn(*Graph().inputs(2))


def test_refusals_say_what_to_do():
    x, y = Graph().inputs(2)
    with pytest.raises(TypeError, match="use safe_div"):
        x / y
    with pytest.raises(TypeError, match="use select"):
        bool(x > y)


# guarded primitives ---------------------------------------------------------------------------------------------------

# operator, a singular point, its value there, the gradient of the sum of its results there
SINGULAR = {
    "safe_norm": (lambda x, y, z: el.safe_norm((x, y, z)), (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0)),
    "safe_div": (el.safe_div, (1.0, 0.0), 0.0, (0.0, 0.0)),
    "safe_root": (el.safe_root, (0.0,), 0.0, (0.0,)),
    "safe_root of less than zero": (el.safe_root, (-1.0,), 0.0, (0.0,)),
    "sinc_of_square": (el.sinc_of_square, (0.0,), (1.0, 1.0), (-1 / 2 - 1 / 6,)),
    "angle_over_sine": (el.angle_over_sine, (1.0, 0.0), 2.0, (0.0, 1 / 3)),
    "atan2": (el.atan2, (0.0, 0.0), 0.0, (0.0, 0.0)),
    "select": (lambda x: el.select(x > 0.0, el.root(el.maximum(x, 1.0)), 2.0 * x), (0.0,), 0.0, (2.0,)),
}


@pytest.mark.parametrize(("fn", "point", "value", "gradient"), SINGULAR.values(), ids=SINGULAR)
def test_singular_points(fn, point, value, gradient):
    """On floats, which raise, and on arrays, told to raise: nothing singular is computed, even to be thrown away."""
    operator, names = traced(fn), " ".join(fn.__code__.co_varnames[: fn.__code__.co_argcount])
    for kind in (float, lambda x: np.full(3, x)):
        at, bars = [kind(x) for x in point], shaped_like(value, [kind(1.0) for _ in flatten(value)])
        with np.errstate(all="raise"):
            values, reverse_ = operator(*at), adjoint(operator, names)(*at, bars)
            _, dots = tangent(operator)(*at, tuple(kind(1.0) for _ in at))
        np.testing.assert_allclose([np.mean(x) for x in flatten(values)], flatten(value), rtol=1e-15)
        np.testing.assert_allclose([np.mean(x) for x in flatten(reverse_)], gradient, rtol=1e-15)
        np.testing.assert_allclose(np.mean(sum(flatten(dots))), sum(gradient), rtol=1e-15)


@pytest.mark.parametrize("parts", [1, 2])
def test_singular_points_compiled(parts):
    """Value, adjoint, and with two parts the tangents of both: all finite, all arguments zero."""
    given = {field: np.ones((1, SCHEMA.width(field), parts, 4)) for field in ("work.a", "work.b", "work_bar.risk")}
    given["work.a"][:, :, 0], given["work.b"][:, :, 0] = 0.0, 0.0
    found = run("guarded", given, parts=parts)
    assert all(np.isfinite(found[field]).all() for field in ("work.risk", "work_bar.a", "work_bar.b"))
    np.testing.assert_array_equal(found["work.risk"][0, :, 0, 0], (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0))
    np.testing.assert_array_equal(found["work_bar.a"][0, :, 0, 0], 0.0)


@pytest.mark.parametrize(
    "z", [0.0, 1e-12, 1e-3 * (1 - 1e-12), 1e-3 * (1 + 1e-12), 0.04 * (1 - 1e-12), 0.04 * (1 + 1e-12), 0.7]
)
def test_series_meet_the_functions(z):
    """sinc_of_square changes over at 0.04, angle_over_sine at 0.001."""
    n = math.sqrt(z)
    expected = (math.cos(n), math.sin(n) / n if z else 1.0, 2.0 * math.asin(n) / n if z else 2.0)
    found = (*el.sinc_of_square(z), el.angle_over_sine(math.sqrt(1.0 - z), z))
    np.testing.assert_allclose(found, expected, rtol=1e-15)


# adjoint and tangent --------------------------------------------------------------------------------------------------


def test_plain_adjoint_and_tangent_agree():
    """<bar, tangent> = <adjoint, dot>, on floats and on arrays, and both agree with differences."""
    rng = np.random.default_rng(1)
    for shape in ((), (6,)):
        a, a_dot, b, b_dot, bars = (tuple(rng.normal(size=(n, *shape))) for n in (3, 3, 2, 2, 4))
        y, y_dot = tangent(smooth)(a, b, (a_dot, b_dot))
        found = smooth_adjoint(a, b, bars)
        there = np.sum(np.array(bars) * y_dot, axis=0)
        back = np.sum(np.array(flatten(found)) * (*a_dot, *b_dot), axis=0)
        np.testing.assert_allclose(there, back, rtol=1e-13)
        np.testing.assert_allclose(y, smooth(a, b), rtol=0, atol=0)
        if not shape:
            h = 1e-6
            ends = [smooth(*(np.add(x, s * np.array(d)) for x, d in ((a, a_dot), (b, b_dot)))) for s in (h, -h)]
            np.testing.assert_allclose(y_dot, np.subtract(*ends) / (2 * h), rtol=1e-8, atol=1e-9)


def test_results_that_are_inputs_or_constants():
    operator = traced(lambda x, y: (x, x, 1.0, 2.0 * x))
    assert adjoint(operator, "x y")(3.0, 4.0, (1.0, 10.0, 100.0, 1000.0)) == (2011.0, 0.0)
    assert tangent(operator)(3.0, 4.0, (1.0, 1.0)) == ((3.0, 3.0, 1.0, 6.0), (1.0, 1.0, 0.0, 2.0))


def test_derivative_at_zero_of_an_argument_left_out():
    operator = traced(lambda x, turn=(0.0, 0.0): (x * turn[0] + turn[1] * turn[1], x + turn[1]))
    assert adjoint(operator, "x turn", at_zero="turn")(3.0, (1.0, 10.0)) == (10.0, (3.0, 10.0))


# packs ----------------------------------------------------------------------------------------------------------------


def test_compiled_is_plain():
    """A kernel that calls two others through their addresses, a sweep, and accumulation into chosen rows."""
    given = drawn(*INPUTS)
    found = run("there_and_back", given)
    for env in (0, 3, 7):
        tables = run_plain(there_and_back, given, env)
        for field in RESULTS:
            table, name = field.split(".")
            expected = np.array(getattr(getattr(tables, table), name)).reshape(ROWS, -1)
            np.testing.assert_allclose(found[field][:, :, 0, env], expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("parts", [1, 2])
def test_width_does_not_change_bits(parts):
    given = drawn(*INPUTS, parts=parts)
    widest = run("there_and_back", given, lanes=8, parts=parts)
    for lanes in (1, 2, 4) if parts == 1 else (1,):
        found = run("there_and_back", given, lanes=lanes, parts=parts)
        for field in RESULTS:
            np.testing.assert_array_equal(found[field], widest[field], err_msg=f"{field} at width {lanes}")


def test_compiled_adjoint_and_tangent_agree():
    """Sum of y_bar y_dot = sum of x_bar x_dot, environment by environment."""
    given = drawn(*INPUTS, parts=2)
    duals = run("forward", {field: given[field] for field in ("work.a", "work.b")}, parts=2)
    bars = run("reverse", {field: values[:, :, :1] for field, values in given.items()})
    there = sum(np.sum(given[f"work_bar.{x}"][:, :, 0] * duals[f"work.{x}"][:, :, 1], (0, 1)) for x in ("y", "total"))
    back = sum(np.sum(bars[f"work_bar.{x}"][:, :, 0] * given[f"work.{x}"][:, :, 1], (0, 1)) for x in ("a", "b"))
    np.testing.assert_allclose(there, back, rtol=1e-12)


def test_tangent_of_the_adjoint():
    """Two parts carry tangents through the reverse as well: against differences of it. The first part is the value."""
    given, h = drawn(*INPUTS, parts=2), 1e-6
    found = run("there_and_back", given, parts=2)
    values = {field: x[:, :, :1] for field, x in given.items()}
    ends = [run("there_and_back", {f: x + s * given[f][:, :, 1:] for f, x in values.items()}) for s in (h, -h)]
    single = run("there_and_back", values)
    for field in RESULTS:
        differences = (ends[0][field] - ends[1][field]) / (2 * h)
        np.testing.assert_allclose(found[field][:, :, 1:], differences, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found[field][:, :, :1], single[field], rtol=1e-14)


def emitted(fn, n_inputs, lanes=4):
    """LLVM text of a traced function."""
    from llvmlite import ir

    from jointgrad.compiler import emit as emission

    module, kind = ir.Module(), emission.vector(lanes)
    function = ir.Function(module, ir.FunctionType(kind, [kind] * n_inputs), "operator")
    builder = ir.IRBuilder(function.append_basic_block())
    outputs = flatten(fn(*Graph().inputs(n_inputs)))
    builder.ret(emission.emit(builder, outputs, list(function.args), lanes)[0])
    return str(function)


def test_a_product_used_once_by_a_sum_is_an_fma():
    text = emitted(lambda a, b, c, d: a * b + c * d - a * d, 4)
    assert (text.count('@"llvm.fma.v4f64"'), text.count("fmul"), text.count("fadd")) == (2, 1, 0)
    text = emitted(lambda a, b, c, d: (a * b + c) * (a * b + d), 4)  # used twice: stays a product
    assert (text.count("llvm.fma"), text.count("fmul"), text.count("fadd")) == (0, 2, 2)


def test_no_fast_math():
    text = emitted(lambda a, b, c, d: sum(smooth((a, b, c), (d, a))), 4)
    assert not any(flag in text for flag in (" fast ", "reassoc", "contract", "nnan", "ninf", "arcp", "afn"))


# elementary functions -------------------------------------------------------------------------------------------------


def compiled_functions(x, y):
    pairs = np.stack([np.resize(v, -(-len(x) // 4) * 4) for v in (x, y)], axis=-1)
    found = run("functions", {"work.b": pairs.reshape(-1, 4, 1, 2).transpose(0, 3, 2, 1)})["work.values"]
    return found.transpose(1, 0, 3, 2).reshape(5, -1)[:, : len(x)]


def spread_out(rng, low, high, n):
    """Either sign, evenly over the powers of ten."""
    return 10.0 ** rng.uniform(low, high, n) * rng.choice([-1.0, 1.0], n)


def sample(name):
    rng = np.random.default_rng(3)
    near_quarters = np.arange(-63000, 63000, 7) * (math.pi / 2)
    turns = [rng.uniform(-10, 10, 4000), rng.uniform(-1e5, 1e5, 8000), near_quarters, spread_out(rng, -300, 5, 2000)]
    return {
        "sin": turns,
        "cos": turns,
        "exp": [rng.uniform(-700, 700, 8000), rng.uniform(-2, 2, 4000), spread_out(rng, -300, 0, 500)],
        "tanh": [rng.uniform(-20, 20, 8000), rng.uniform(-1, 1, 8000), spread_out(rng, -300, 6, 2000)],
        "atan2": [spread_out(rng, -3, 3, 8000), spread_out(rng, -150, 150, 2000), rng.normal(size=8000)],
    }[name]


@pytest.mark.parametrize(("name", "ulps"), [("sin", 3), ("cos", 3), ("exp", 2), ("tanh", 12), ("atan2", 6)])
def test_elementary_functions(name, ulps):
    """In units in the last place of the true value, over all magnitudes; sin and cos to 1e5, near their zeros too."""
    x = np.concatenate(sample(name))
    y = np.concatenate(sample(name)[::-1]) if name == "atan2" else x
    found = compiled_functions(x, y)[("sin", "cos", "exp", "tanh", "atan2").index(name)]
    true = np.array(
        [math.atan2(b, a) if name == "atan2" else getattr(math, name)(a) for a, b in zip(x, y, strict=True)]
    )
    error = np.abs(found - true) / np.spacing(np.abs(true))
    assert error.max() <= ulps, f"{error.max():.1f} ulp at {x[error.argmax()]!r}, {y[error.argmax()]!r}"


def test_atan2_on_the_axes():
    axes = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)]
    y, x = np.array(axes).T
    np.testing.assert_allclose(compiled_functions(x, y)[4], np.arctan2(y, x), rtol=1e-15)


def test_not_a_number_stays_one():
    """A blow-up must not turn into a finite number on its way to whoever looks for it."""
    nan = np.full(4, np.nan)
    found = dict(zip(("sin", "cos", "exp", "tanh", "atan2"), compiled_functions(nan, nan)[:, 0], strict=True))
    assert not {name: value for name, value in found.items() if not np.isnan(value)}


# the disk cache -------------------------------------------------------------------------------------------------------


@traced
def twice(x):
    return 2.0 * x


@kernel
def doubled(frame):
    work = frame.work
    work.y[0] = twice(work.x[0])


TINY = Schema("compiler_test_tiny", dict(work=dict(x=1, y=1)), ("doubled",))


def double_of_three():
    """As a new process would: from the cache if it can, else compiled."""
    frame = Frame(TINY, {"work.x": 1, "work.y": 1}, {}, 2)
    frame.table("work.x")[:] = 3.0
    Library(TINY, [doubled], 2).attach(frame, "doubled")()
    return frame.table("work.y").ravel().tolist()


@pytest.fixture
def compilations(monkeypatch):
    """Names of kernels compiled, rather than loaded, during a test."""
    from jointgrad.compiler import build

    names, compile_ = [], build.machine_code
    monkeypatch.setattr(build, "machine_code", lambda lib, k: names.append(k.__name__) or compile_(lib, k))
    return names


def test_second_time_from_disk(tmp_path, monkeypatch, compilations):
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path))
    assert double_of_three() == double_of_three() == [6.0, 6.0]
    assert compilations == ["doubled"]


@pytest.mark.parametrize("keep", ["nothing", "magic", "half the header", "half", "all but one byte", "one bit flipped"])
def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch, compilations, keep):
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path))
    double_of_three()
    (path,) = tmp_path.rglob("*.code")
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    cut = {"nothing": 0, "magic": first, "half the header": first + 20, "half": len(whole) // 2}
    flipped = whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:]
    path.write_bytes(flipped if keep == "one bit flipped" else whole[: cut.get(keep, -1)])
    assert double_of_three() == [6.0, 6.0]
    assert compilations == ["doubled"] * 2
    assert path.read_bytes().startswith(whole[:first])
    assert double_of_three() == [6.0, 6.0]
    assert compilations == ["doubled"] * 2  # the second compilation mended the file


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, compilations):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert double_of_three() == double_of_three() == [6.0, 6.0]
    assert compilations == ["doubled"]  # kept for this process


def test_of_two_that_need_a_kernel_one_compiles_it(tmp_path, monkeypatch, compilations):
    """Two threads with files of their own stand for two processes: locks are those of open files."""
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(kernel_module, "one_at_a_time", contextlib.nullcontext())  # which two processes do not share
    both = Barrier(2)

    def late():
        both.wait()
        return double_of_three()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(late), pool.submit(late)
        assert first.result() == second.result() == [6.0, 6.0]
    assert compilations == ["doubled"]


def test_nobody_waits_for_ever(tmp_path, monkeypatch, compilations):
    """A process that was stopped while it compiled."""
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "PATIENCE", 0.05)
    with cache.alone("doubled-2x1", of_kernel(doubled, TINY)):
        assert double_of_three() == [6.0, 6.0]
    assert compilations == ["doubled"]


SIMULATION = """
import sys, jointgrad as jg
world = jg.World()
world.add(jg.zoo.pendulum(1, damping=0.5))
model = world.compile(dt=1e-2)
rate = jg.step(model, jg.State(model.initial_state().q, model.initial_state().qd + 1.0)).qd
print(rate.tolist(), "numba" in sys.modules)
"""


def test_changed_source_is_compiled_again(tmp_path):
    """A copy of the package, an operator of it changed, and changed back: no run sees the code of another."""
    package = tmp_path / "jointgrad"
    shutil.copytree(Path(jg.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "JOINTGRAD_CACHE": str(tmp_path / "cache")}

    def simulated():
        command = [sys.executable, "-W", "error", "-c", SIMULATION]
        return subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    operators = package / "engine" / "kernels" / "stages" / "forces.py"
    original, before = simulated(), operators.read_text()
    assert "-(damping * rate)" in before
    operators.write_text(before.replace("-(damping * rate)", "-(3.0 * damping * rate)"))
    assert original.endswith("True\n")
    kept = set((tmp_path / "cache").rglob("*.code"))
    assert simulated().split("]")[0] != original.split("]")[0]
    # that operator is in one kernel of those that a step needs
    (new,) = set((tmp_path / "cache").rglob("*.code")) - kept
    assert new.name.startswith("forces-")
    operators.write_text(before)
    assert simulated() == original.replace("True", "False")  # from the cache: numba is not even imported


def kernel_with(factor):
    """A kernel whose code is always the same, but not what it refers to."""

    @traced
    def scaled(x):
        return factor(x)

    @sweep
    def through(x):
        return scaled(x)

    def fn(frame):
        frame.work.y[0] = through(frame.work.x[0])

    return kernel(fn)


def times(number):
    return lambda x: number * x


def test_a_kernel_is_known_by_all_that_it_is_made_of():
    """Constants, functions and layouts, however far away; and by nothing else."""
    wider = Schema("compiler_test_tiny", dict(work=dict(x=1, y=2)), ("doubled",))
    keys = [of_kernel(kernel_with(f), TINY) for f in (times(2.0), times(3.0), times(2), lambda x: x + 2.0)]
    keys.append(of_kernel(kernel_with(times(2.0)), wider))
    assert len(set(keys)) == len(keys)
    assert of_kernel(kernel_with(times(2.0)), TINY) == keys[0]


def test_a_kernel_takes_a_frame():
    with pytest.raises(TypeError, match="kernel fn takes .*work.* and should take"):

        @kernel
        def fn(work):
            pass


def test_a_new_field_leaves_the_code_of_others():
    """Slots are found by name: where one more moves no other, kernels that do not name it stay as they are; of the engine's, nearly
    all do."""
    more = Schema(TINY.name, {"work": TINY.tables["work"] | {"z": 1}, "other": {"z": 3}}, TINY.kernels)
    assert {f: more.slots[f] for f in TINY.slots} == TINY.slots
    assert of_kernel(doubled, more) == of_kernel(doubled, TINY)
    tables = workspace.SCHEMA.tables
    larger = Schema("engine", tables | {"work": {"made_up": 1} | tables["work"]}, workspace.SCHEMA.kernels)
    kernels = runtime.library(4, 1).kernels.values()
    kept = [of_kernel(k, larger) == of_kernel(k, workspace.SCHEMA) for k in kernels]
    assert len(kernels) > 50 and sum(kept) > 0.9 * len(kernels)


# the no-compiler mode, beside the compiled one ------------------------------------------------------------------------


@memoized
def robot():
    """Every joint kind, a free base, springs, dampers, actuators."""
    world = jg.World(gravity=(0.3, -0.2, -9.81))
    world.add(jg.zoo.random_tree(6, seed=4))
    return world.compile(dt=1e-2)


def motion(batch=3, steps=2):
    model, rng = robot(), np.random.default_rng(6)
    q = model.initial_state(batch=batch).q + 0.3 * rng.normal(size=(batch, model.nq))
    qd, u = rng.normal(size=(batch, model.nv)), rng.normal(size=(steps, batch, model.nu))
    return q, qd, u, rng.normal(size=(steps, batch, model.n_links, 6))


def test_plain_step_on_arrays():
    model, (q, qd, u, force) = robot(), motion()
    state = jg.step(model, jg.State(q, qd), u[0], force[0])
    for found, expected in zip(state, jg.plain.step(model, q, qd, u[0], force[0]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_plain_step_on_floats():
    model, (q, qd, u, _) = robot(), motion()
    state = jg.step(model, jg.State(q[1], qd[1]), u[0, 1])
    found = jg.plain.step(model, q[1].tolist(), qd[1].tolist(), u[0, 1].tolist())
    assert all(type(x) is float for x in flatten(tuple(map(tuple, found))))
    for expected, values in zip(state, found, strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


def test_plain_step_with_more_digits():
    """mpmath at 50 digits: the compiled step is right to rounding."""
    mpmath = pytest.importorskip("mpmath")
    model, (q, qd, u, _) = robot(), motion()
    state = jg.step(model, jg.State(q[0], qd[0]), u[0, 0])
    with mpmath.workdps(50):
        found = jg.plain.step(model, *([mpmath.mpf(x) for x in values.tolist()] for values in (q[0], qd[0], u[0, 0])))
        assert all(isinstance(x, mpmath.mpf) for x in found[1])
        for values, expected in zip(state, found, strict=True):
            np.testing.assert_allclose(values, [float(x) for x in expected], rtol=1e-12, atol=1e-13)


def test_torch_differentiates_the_same_source():
    torch = pytest.importorskip("torch")
    model, (q, qd, u, _) = robot(), motion()
    trajectory = jg.rollout(model, jg.State(q, qd), u)
    rng = np.random.default_rng(7)
    q_bar, qd_bar = rng.normal(size=q.shape), rng.normal(size=qd.shape)
    gradient = trajectory.backward(q_bar, qd_bar)
    names = ("link.mass", "link.com", "joint.damping", "world.gravity")
    leaves = [torch.tensor(x, requires_grad=True) for x in (q, qd, u, *(model.params[name] for name in names))]
    state, params = leaves[:2], dict(zip(names, leaves[3:], strict=True))
    for k in range(len(u)):
        state = jg.plain.step(model, *state, leaves[2][k], params=params)
    loss = sum((x * torch.tensor(bar)).sum() for x, bar in zip(state, (q_bar, qd_bar), strict=True))
    expected = [g.numpy() for g in torch.autograd.grad(loss, leaves)]
    found = [gradient.q, gradient.qd, gradient.u, *(gradient.params[name] for name in names)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


def test_threads_that_load_at_once_load_one_after_the_other(monkeypatch):
    """Another thread must not find the address of code that is not linked yet."""
    events = []

    class Engine:
        def add_object_file(self, _):
            events.append("add")
            time.sleep(0.02)

        def finalize_object(self):
            time.sleep(0.02)
            events.append("link")

        def get_function_address(self, _):
            events.append("find")
            return 1

    monkeypatch.setattr(cache, "_engine", Engine)
    monkeypatch.setattr("llvmlite.binding.ObjectFileRef.from_data", lambda data: data)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(cache.address_of, [cache.Code("f", b"")] * 4))
    assert events == ["add", "link", "find"] * 4


def test_threads_share_one_library(monkeypatch):
    made = []

    def slow(*args):
        made.append(args)
        time.sleep(0.05)
        return object()

    monkeypatch.setattr(runtime, "Library", slow)
    monkeypatch.setattr(runtime, "_libraries", {})
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: runtime.library(4, 1), range(8)))) == 1
    assert len(made) == 1
