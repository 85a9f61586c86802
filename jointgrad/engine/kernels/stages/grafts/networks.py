"""Networks in packs: rows of layers over `work.node`, their inputs first; weights of a layer lie input by input, biases last."""

from .....compiler.elementary import exp, log, maximum, minimum, select, sin, tanh
from .....compiler.kernel import accumulate, inlined, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.grafts import ELU, RELU, SIGMOID, SIN, SOFTPLUS, TANH
from ...operators import zero

# activations --------------------------------------------------------------------------------------------------------------


@traced
def is_tanh(x):
    return tanh(x)


@traced
def is_elu(x):
    return select(x > 0.0, x, exp(minimum(x, 0.0)) - 1.0)


@traced
def is_relu(x):
    return maximum(x, 0.0)


@traced
def is_softplus(x):
    return maximum(x, 0.0) + log(1.0 + exp(-maximum(x, -x)))


@traced
def is_sin(x):
    return sin(x)


@traced
def is_sigmoid(x):
    return 0.5 + 0.5 * tanh(0.5 * x)


@inlined
def activated(kind, x):
    if kind == TANH:
        return is_tanh(x)
    if kind == ELU:
        return is_elu(x)
    if kind == RELU:
        return is_relu(x)
    if kind == SOFTPLUS:
        return is_softplus(x)
    if kind == SIN:
        return is_sin(x)
    if kind == SIGMOID:
        return is_sigmoid(x)
    return x


is_tanh_adjoint, is_elu_adjoint, is_relu_adjoint = (adjoint(f, "x") for f in (is_tanh, is_elu, is_relu))
is_softplus_adjoint, is_sin_adjoint, is_sigmoid_adjoint = (adjoint(f, "x") for f in (is_softplus, is_sin, is_sigmoid))


@inlined
def activated_adjoint(kind, x, bar):
    if kind == TANH:
        return is_tanh_adjoint(x, bar)
    if kind == ELU:
        return is_elu_adjoint(x, bar)
    if kind == RELU:
        return is_relu_adjoint(x, bar)
    if kind == SOFTPLUS:
        return is_softplus_adjoint(x, bar)
    if kind == SIN:
        return is_sin_adjoint(x, bar)
    if kind == SIGMOID:
        return is_sigmoid_adjoint(x, bar)
    return bar


# networks: layers over work.node ------------------------------------------------------------------------------------------


@traced
def fused(a, w, x):
    return a + w * x


@traced
def four_fused(a, b, c, d, p, q, r, s, x):
    """Four sums side by side, which need not wait for each other."""
    return a + p * x, b + q * x, c + r * x, d + s * x


@inlined
def layer(frame, w, first, n_in, n_out, kind):
    """Nodes first + n_in ... from the n_in nodes before them; work.pre keeps what went into the activations."""
    work = frame.work
    W, bias, out = frame.params.graft_weight, w + n_in * n_out, first + n_in
    o = 0
    while o + 4 <= n_out:
        a, b, c, d = W[bias + o], W[bias + o + 1], W[bias + o + 2], W[bias + o + 3]
        for i in range(n_in):
            p = w + i * n_out + o
            a, b, c, d = four_fused(a, b, c, d, W[p], W[p + 1], W[p + 2], W[p + 3], work.node[first + i])
        work.pre[out + o], work.pre[out + o + 1], work.pre[out + o + 2], work.pre[out + o + 3] = a, b, c, d
        o += 4
    while o < n_out:
        a = W[bias + o]
        for i in range(n_in):
            a = fused(a, W[w + i * n_out + o], work.node[first + i])
        work.pre[out + o] = a
        o += 1
    for k in range(out, out + n_out):
        work.node[k] = activated(kind, work.pre[k])


@sweep
def run_network(frame, net, node):
    """From its first node on; leaves the outputs in the last nodes."""
    tree = frame.tree
    w = tree.net_weight[net]
    for k in range(tree.net_layer[net], tree.net_layer[net] + tree.net_layers[net]):
        n_in, n_out = tree.layer_in[k], tree.layer_out[k]
        layer(frame, w, node, n_in, n_out, tree.layer_kind[k])
        w += (n_in + 1) * n_out
        node += n_in


@traced
def times_bar(x, bar):
    return x * bar


@traced
def sum_of(a, b, c, d):
    return (a + b) + (c + d)


@inlined
def layer_adjoint(frame, bar, w, first, n_in, n_out, kind, wants_weights):
    """Overwrites the cotangents of the layer's inputs; adds to those of its weights."""
    params, work = frame.params, frame.work
    W, out, none = params.graft_weight, first + n_in, zero(params.world_dt[0])
    for k in range(out, out + n_out):
        bar.work.node[k] = activated_adjoint(kind, work.pre[k], bar.work.node[k])
    for i in range(n_in):
        p, o, x = w + i * n_out, 0, work.node[first + i]
        a, b, c, d = none, none, none, none
        while o + 4 <= n_out:
            e, f, g, h = (
                bar.work.node[out + o],
                bar.work.node[out + o + 1],
                bar.work.node[out + o + 2],
                bar.work.node[out + o + 3],
            )
            a, b, c, d = (
                fused(a, W[p + o], e),
                fused(b, W[p + o + 1], f),
                fused(c, W[p + o + 2], g),
                fused(d, W[p + o + 3], h),
            )
            o += 4
        while o < n_out:
            a = fused(a, W[p + o], bar.work.node[out + o])
            o += 1
        bar.work.node[first + i] = sum_of(a, b, c, d)
        if wants_weights != 0:
            for j in range(n_out):
                accumulate(bar.params.graft_weight, p + j, times_bar(x, bar.work.node[out + j]))
    if wants_weights != 0:
        for j in range(n_out):
            accumulate(bar.params.graft_weight, w + n_in * n_out + j, bar.work.node[out + j])


@sweep
def run_network_adjoint(frame, bar, net, node, wants_weights):
    tree = frame.tree
    first, last = tree.net_layer[net], tree.net_layer[net] + tree.net_layers[net] - 1
    w = tree.net_weight[net]
    for k in range(first, last):
        w += (tree.layer_in[k] + 1) * tree.layer_out[k]
        node += tree.layer_in[k]
    k = last
    while k >= first:
        n_in, n_out = tree.layer_in[k], tree.layer_out[k]
        layer_adjoint(frame, bar, w, node, n_in, n_out, tree.layer_kind[k], wants_weights)
        k -= 1
        if k >= first:
            w -= (tree.layer_in[k] + 1) * tree.layer_out[k]
            node -= tree.layer_in[k]
