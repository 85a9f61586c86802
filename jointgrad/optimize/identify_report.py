"""The report of an identification: fit.json for machines, and one HTML page that opens offline."""

from __future__ import annotations

import dataclasses
import html
import json
import math
from pathlib import Path
from typing import Any

from .identify import Fit

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
        "estimates": [{k: _plain(v) for k, v in dataclasses.asdict(e).items()} for e in fit.estimates],
        "covariance": [[_plain(float(v)) for v in row] for row in fit.covariance],
        "singular_values": [float(v) for v in fit.singular_values],
        "unidentifiable": fit.unidentifiable,
        "residual_rms": _plain(fit.residual_rms),
        "loss": _plain(fit.result.loss),
        "reason": fit.result.reason,
        "iterations": len(history) - 1,
        "history": [[_plain(v) for v in row] for row in history.rows()],
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_html(fit: Fit) -> str:
    rows = "".join(_row(e) for e in fit.estimates)
    blind = "".join(f"<li>{html.escape(_mixture(d))}</li>" for d in fit.unidentifiable)
    unseen = f"<p class=warn>The data do not determine these directions:</p><ul>{blind}</ul>" if blind else ""
    seen = "<p>Every unknown is determined by the data.</p>"
    values = ", ".join(f"{v:.2e}" for v in fit.singular_values)
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>Identification</title><style>{STYLE}</style></head><body>'
        f"<h1>Identification</h1><p>Residuals: {fit.residual_rms:.3g} standard deviations (rms); ended: "
        f"{html.escape(fit.result.reason)} after {len(fit.result.history) - 1} iterations.</p>"
        f"<table><tr><th>parameter</th><th>start</th><th>found</th><th>standard deviation</th><th></th></tr>{rows}</table>"
        f"{unseen or seen}<p>Singular values of the Jacobian: {values}</p><h2>Loss</h2>{_curve(fit)}</body></html>\n"
    )


def _row(e: Any) -> str:
    deviation = f"{e.deviation:.2g}" if math.isfinite(e.deviation) else "not determined"
    note = "at its bound" if e.at_bound else ""
    cells = (f"{e.start:.6g}", f"{e.value:.6g}", deviation, note)
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
