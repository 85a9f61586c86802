"""Figures as printed in Qiao 2021, tables 1-3: one Laikago on a Xeon W-2123. None of them was measured here."""

from __future__ import annotations

from .peers import Record

STEPS = (50, 100, 500, 1000, 5000)
FORWARD_MS = {
    "ADF": (25.7, 25.5, 25.1, 32.1, 58.4),
    "Ceres": (27.2, 27.5, 27.2, 34.0, 58.2),
    "CppAD": (2.4, 2.4, 2.3, 2.3, 4.5),
    "JAX": (53.3, 46.1, 43.1, 42.7, 42.3),
    "PyTorch": (195.6, 192.2, 199.2, 192.8, None),
    "Qiao 2021": (0.3, 0.3, 0.2, 0.2, 0.2),
}
BACKWARD_MS = {
    "Ceres": (29.5, 29.6, 29.5, 37.6, 62.8),
    "CppAD": (2.4, 2.3, 2.3, 2.4, 4.8),
    "JAX": (148.1, 125.7, 127.6, 129.6, 126.6),
    "PyTorch": (275.7, 273.3, 280.8, 272.1, None),
    "Qiao 2021": (1.2, 1.1, 1.2, 1.1, 1.2),
}
MEMORY_MB = {
    "Ceres": (100.0, 200.0, 1100.0, 2700.0, 23600.0),
    "CppAD": (16.0, 26.0, 160.0, 320.0, 3100.0),
    "JAX": (200.0, 200.0, 400.0, 700.0, 3000.0),
    "PyTorch": (1200.0, 2400.0, 11700.0, 12400.0, None),
    "Qiao 2021": (0.3, 0.3, 0.7, 1.2, 5.0),
}
NOTE = "printed in Qiao 2021, tables 1-3, on its own Xeon W-2123; not measured here"


def laikago_records() -> list[Record]:
    """The tables as records. ADF gave no gradient within ten minutes; PyTorch ran out of memory at 5,000 steps."""
    found = []
    for name in FORWARD_MS:
        for k, steps in enumerate(STEPS):
            told: Record = {"peer": f"printed {name}", "title": f"{name} (printed)", "status": "printed", "note": NOTE}
            told |= {"steps": steps, "batch": 1, "cores": 1}
            forward, backward = FORWARD_MS[name][k], BACKWARD_MS.get(name, (None,) * 5)[k]
            if forward is not None:
                found.append(told | {"what": "forward", "best_us": 1e3 * forward})
            if backward is not None:
                memory = MEMORY_MB[name][k]
                assert memory is not None
                found.append(told | {"what": "backward", "best_us": 1e3 * backward, "memory_bytes": 1e6 * memory})
    return found
