"""The stages of a step and what flows between them, from the stages' own declarations; prints docs/pipeline.md."""

from __future__ import annotations

from types import ModuleType

from .stages import (
    articulated,
    assembly,
    contact,
    detection,
    forces,
    grafts,
    integration,
    kinematics,
    outputs,
    springs,
    tendons,
)

# in the order of the step; assembly runs once per rollout, outputs where they are asked for
STAGES: dict[str, ModuleType] = {
    "assembly_stage": assembly,
    "kinematics": kinematics,
    "detection": detection,
    "springs": springs,
    "tendons": tendons,
    "forces": forces,
    "articulated": articulated,
    "contact": contact,
    "integration": integration,
    "outputs": outputs,
}
# networks, after kinematics, where a model has some
ON_REQUEST: dict[str, ModuleType] = {"grafts": grafts}
# what a step is given
INPUTS = ("params", "state", "axis_reference")


def markdown() -> str:
    """The page, as text."""
    lines = [
        "# The pipeline",
        "",
        "Printed by `python -m jointgrad.engine.kernels.pipeline` from the `READS` and `WRITES` of the stages; a test holds it.",
        "A step runs the stages from top to bottom (the last, after kinematics, where a model has networks);",
        "its reverse runs their adjoints from bottom to top. Fields are",
        "explained in `jointgrad/engine/kernels/workspace.py`.",
        "",
        "| stage | reads | writes | what it does |",
        "|---|---|---|---|",
    ]
    for name, stage in {**STAGES, **ON_REQUEST}.items():
        reads = ", ".join(f"`{f}`" for f in stage.READS)
        writes = ", ".join(f"`{f}`" for f in stage.WRITES)
        first = (stage.__doc__ or "").strip().split("\n")[0].rstrip(".")
        lines.append(f"| {name.removesuffix('_stage')} | {reads} | {writes} | {first} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
