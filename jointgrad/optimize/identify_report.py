"""The report of an identification: a few lines, fit.json for machines, and one HTML page that opens offline."""

from __future__ import annotations

import dataclasses
import html
import json
import math
from pathlib import Path
from typing import Any

from .identify import Candidate, Estimate, Fit

STYLE = (
    "body{font-family:sans-serif;margin:2em auto;max-width:60em;color:#222}td,th{padding:.2em .9em;text-align:right}"
    "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f3f3f3}.warn{color:#b00}"
)


def write_report(fit: Fit, folder: str | Path) -> Path:
    """fit.json and report.html in a folder; returns the page."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / "fit.json").write_text(json.dumps(as_dict(fit), indent=2, allow_nan=False) + "\n")
    page = out / "report.html"
    page.write_text(as_html(fit))
    return page


def as_dict(fit: Fit) -> dict[str, Any]:
    """Everything but the model; numbers that are not finite become null."""
    history = fit.result.history
    return {
        "estimates": [
            {**{k: _plain(v) for k, v in dataclasses.asdict(e).items()}, "interval": [_plain(v) for v in e.interval]}
            for e in fit.estimates
        ],
        "covariance": [[_plain(float(v)) for v in row] for row in fit.covariance],
        "singular_values": [float(v) for v in fit.singular_values],
        "unidentifiable": fit.unidentifiable,
        "residual_rms": _plain(fit.residual_rms),
        "loss": _plain(fit.result.loss),
        "reason": fit.reason,
        "converged": fit.is_converged,
        "segment": fit.segment,
        "period": fit.period,
        "starts": fit.starts,
        "noise": {k: [_plain(float(v)) for v in a] for k, a in vars(fit.noise).items()},
        "choice": [{k: _plain(v) for k, v in dataclasses.asdict(c).items()} for c in fit.choice],
        "notes": fit.notes,
        "iterations": len(history) - 1,
        "history": [[_plain(v) for v in row] for row in history.rows()],
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_text(fit: Fit) -> str:
    """What the command line says."""
    lines = [f"note: {note}" for note in fit.notes]
    lines += [_candidate(c, fit.period) for c in fit.choice]
    lines += [f"noise of {name}: {' '.join(f'{v:.3g}' for v in a)}" for name, a in _used_noise(fit)]
    lines += [_estimate(e) for e in fit.estimates]
    lines += [f"not determined by the recording: {_mixture(d)}" for d in fit.unidentifiable]
    remedy = "" if fit.is_converged else ": NOT CONVERGED, another start or other segments may help"
    return "\n".join([*lines, f"{fit.reason} after {len(fit.result.history) - 1} iterations{remedy}"])


def _used_noise(fit: Fit) -> list[tuple[str, Any]]:
    pairs = ("q", fit.noise.sigma_q), ("qd", fit.noise.sigma_qd)
    return [(name, a) for name, a in pairs if any(math.isfinite(v) for v in a)]


def _candidate(c: Candidate, period: float) -> str:
    how = "whole recording" if c.segment is None else f"segments of {c.segment * period:.3g} s"
    start = "measured start" if c.starts == "measured" else "starts found"
    taken = ": chosen" if c.is_chosen else ""
    return f"{how}, {start}: error of predicted held-out windows {c.error:.4g} standard deviations{taken}"


def _estimate(e: Estimate) -> str:
    value = (
        f"{e.name}: {e.value:.6g} +- {e.deviation:.2g}" if math.isfinite(e.deviation) else f"{e.name}: not determined"
    )
    notes = [f"95 %: {e.interval[0]:.5g} to {e.interval[1]:.5g}"] if math.isfinite(e.deviation) else []
    notes += ["at its bound"] if e.at_bound else []
    notes += ["the recording says no more than its bounds"] if e.is_wide else []
    return f"{value} ({'; '.join([*notes, f'was {e.start:.6g}'])})"


def as_html(fit: Fit) -> str:
    rows = "".join(_row(e) for e in fit.estimates)
    heads = "".join(f"<th>{head}</th>" for head in ("parameter", "start", "found", "standard deviation", "95 %", ""))
    blind = "".join(f"<li>{html.escape(_mixture(d))}</li>" for d in fit.unidentifiable)
    unseen = f"<p class=warn>The data do not determine these directions:</p><ul>{blind}</ul>" if blind else ""
    said = "".join(
        f"<p>{html.escape(text)}</p>" for text in [*fit.notes, *(_candidate(c, fit.period) for c in fit.choice)]
    )
    said += "" if fit.is_converged else "<p class=warn>Not converged.</p>"
    seen = "<p>Every unknown is determined by the data.</p>"
    values = ", ".join(f"{v:.2e}" for v in fit.singular_values)
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>Identification</title><style>{STYLE}</style></head><body>'
        f"<h1>Identification</h1><p>Residuals: {fit.residual_rms:.3g} standard deviations (rms); ended: "
        f"{html.escape(fit.reason)} after {len(fit.result.history) - 1} iterations.</p>{said}"
        f"<table><tr>{heads}</tr>{rows}</table>"
        f"{unseen or seen}<p>Singular values of the Jacobian: {values}</p><h2>Loss</h2>{_curve(fit)}</body></html>\n"
    )


def _row(e: Any) -> str:
    deviation = f"{e.deviation:.2g}" if math.isfinite(e.deviation) else "not determined"
    note = "at its bound" if e.at_bound else ""
    low, high = e.interval
    interval = f"{low:.5g} to {high:.5g}" if math.isfinite(e.deviation) else ""
    cells = (f"{e.start:.6g}", f"{e.value:.6g}", deviation, interval, note)
    return f"<tr><td>{html.escape(e.name)}</td>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>"


def _mixture(direction: dict[str, float]) -> str:
    return " ".join(f"{share:+.2f} {name}" for name, share in direction.items())


def _curve(fit: Fit) -> str:
    """The loss against the iterations, logarithmic, as a drawing in the page."""
    best = [max(b, 1e-30) for b in fit.result.history.best if math.isfinite(b)]
    logs = [math.log10(b) for b in best] or [0.0]
    low, high = min(logs), max(max(logs), min(logs) + 1e-9)
    points = " ".join(
        f"{40 + 520 * k / max(len(logs) - 1, 1):.1f},{20 + 160 * (high - v) / (high - low):.1f}"
        for k, v in enumerate(logs)
    )
    return (
        f'<svg width="600" height="200"><polyline points="{points}" fill="none" stroke="#2f6db5" stroke-width="2"/>'
        f'<text x="0" y="24" font-size="11">{best[0]:.1e}</text><text x="0" y="184" font-size="11">{best[-1]:.1e}</text></svg>'
    )
