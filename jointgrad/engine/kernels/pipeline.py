"""The stages of a step and what flows between them, from the stages' own declarations; prints docs/pipeline.md."""

from __future__ import annotations

from types import ModuleType

from . import fields, margins
from .fields import FIELDS
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
from .stages.contact import wrenches
from .workspace import SCHEMA

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
# looks at what a step left: what contact did to links, how near the step was to another one
LOOKS: dict[str, ModuleType] = {"contact_wrenches": wrenches, "margins": margins}
# what a step is given
INPUTS = ("params", "state", "axis_reference", "rate")  # rates: of further state, by whichever stage has such a field


def markdown() -> str:
    """The page, as text."""
    lines = [
        "# The pipeline",
        "",
        "Printed by `python -m jointgrad.engine.kernels.pipeline` from the `READS` and `WRITES` of the stages; a test holds it.",
        "A step runs the stages from top to bottom (grafts after kinematics, where a model has networks; the last two on request);",
        "its reverse runs their adjoints from bottom to top. What every field is stands below.",
        "",
        "| stage | reads | writes | what it does |",
        "|---|---|---|---|",
    ]
    for name, stage in {**STAGES, **ON_REQUEST, **LOOKS}.items():
        reads = ", ".join(f"`{f}`" for f in stage.READS)
        writes = ", ".join(f"`{f}`" for f in stage.WRITES)
        first = (stage.__doc__ or "").strip().split("\n")[0].rstrip(".")
        lines.append(f"| {name.removesuffix('_stage')} | {reads} | {writes} | {first} |")
    return "\n".join([*lines, "", *field_lines()]) + "\n"


def field_lines() -> list[str]:
    """Every field that is described, as a table."""
    known = [(name, field) for name, field in FIELDS.items() if name in SCHEMA.slots]
    said = (fields.__doc__ or "").split("\n\n")[1].replace("\n", " ").strip()
    rows = [f"| `{n}` | {SCHEMA.width(n)} per {f.rows} | {f.unit} | {f.frame} | {f.what} |" for n, f in known]
    return [
        "## Fields",
        "",
        said,
        "",
        "| field | numbers | unit | frame | what it is |",
        "|---|---|---|---|---|",
        *rows,
    ]


if __name__ == "__main__":
    print(markdown(), end="")
