"""The picture of the real pendulums: errors by machine, split and model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .pictures import new_figure

COLOURS = {"untuned": "#999999", "fitted": "#e8710a", "augmented": "#2f6db5"}
WINDOW = "0.5 s"
HIGHEST = 2.0  # of a bar; its label says what it stands for
SAID = {"later": "later parts of the same runs", "runs": "other runs"}


def draw(parts: dict[str, Any], path: Path) -> None:
    """Errors of angles over windows that are followed, in units of the fitted model's; a panel for each split."""
    splits = [s for s in SAID if any(k.endswith(f"/{s}") for k in parts)]
    if not splits:
        return
    figure = new_figure(4.2 * len(splits) + 0.8, 3.6)
    panels = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    for axes, split in zip(panels, splits, strict=True):
        names = [k.split("/")[0] for k in parts if k.endswith(f"/{split}")]
        for k, (model, colour) in enumerate(COLOURS.items()):
            errors = np.array([parts[f"{n}/{split}"][model]["followed"][WINDOW]["q"] for n in names])
            units = np.array([parts[f"{n}/{split}"]["fitted"]["followed"][WINDOW]["q"] for n in names])
            heights = np.minimum(errors / units, HIGHEST)
            bars = axes.bar(np.arange(len(names)) + 0.27 * (k - 1), heights, 0.27, color=colour, label=model)
            axes.bar_label(bars, [f"{1e3 * e:.3g}" for e in errors], fontsize=8)
        is_plain = [parts[f"{n}/{split}"]["augmented"]["chosen"] == "none" for n in names]
        axes.set_xticks(
            range(len(names)), [n + "\nno network" * p for n, p in zip(names, is_plain, strict=True)], fontsize=9
        )
        axes.set_ylim(0, 1.1 * HIGHEST)
        axes.set_title(f"held out: {SAID[split]}", loc="left", fontsize=11)
    panels[0].set_ylabel(f"error of angles over {WINDOW} / fitted")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    figure.suptitle(f"Numbers: mrad; bars end at {HIGHEST:g}", x=0.99, ha="right", fontsize=9)
    figure.savefig(path, dpi=90)
