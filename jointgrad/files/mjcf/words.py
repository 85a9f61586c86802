"""The attributes of the elements that decide about motion, so that a misspelt one is told and not passed over."""

from __future__ import annotations

from ...model.names import unknown
from ..xml import Element

_PLACE = "pos quat axisangle xyaxes zaxis euler"
_SOFT = "solreflimit solimplimit solreffriction solimpfriction"
_ACTUATOR = (
    "name class group nsample interp delay ctrlrange user ctrllimited forcelimited forcerange lengthrange gear damping armature "
    "cranklength joint jointinparent tendon slidersite cranksite site refsite"
)
_LISTED = {
    "compiler": "autolimits boundmass boundinertia settotalmass balanceinertia strippath coordinate angle fitaabb eulerseq "
    "meshdir texturedir discardvisual usethread fusestatic inertiafromgeom inertiagrouprange saveinertial assetdir alignfree "
    "conflict",
    "option": "timestep impratio tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance gravity wind magnetic "
    "density viscosity o_margin o_solref o_solimp o_friction integrator cone jacobian solver iterations ls_iterations "
    "noslip_iterations ccd_iterations sdf_iterations sdf_initpoints actuatorgroupdisable apirate mpr_iterations mpr_tolerance",
    "body": f"name childclass {_PLACE} mocap gravcomp sleep simple user",
    "frame": f"name childclass {_PLACE}",
    "replicate": "count offset euler sep childclass prefix",
    "attach": "model body frame prefix",
    "inertial": f"{_PLACE} mass diaginertia fullinertia",
    "joint": f"name class type group pos axis springdamper limited actuatorfrclimited {_SOFT} stiffness range actuatorfrcrange "
    "actuatorgravcomp margin ref springref armature damping frictionloss align user",
    "freejoint": "name group align",
    "geom": f"name class type contype conaffinity condim group priority size material friction mass density shellinertia solmix "
    f"solref solimp margin gap surfacevel adhesion fromto {_PLACE} hfield mesh fitscale rgba fluidshape fluidcoef user",
    "general": f"{_ACTUATOR} body actlimited actrange actdim input velrange ffrange dyntype gaintype biastype dynprm gainprm "
    "biasprm actearly",
    "motor": _ACTUATOR,
    "position": f"{_ACTUATOR} inheritrange kp kv dampratio timeconst",
    "velocity": f"{_ACTUATOR} kv",
    "damper": f"{_ACTUATOR} kv",
}
WORDS = {tag: frozenset(words.split()) for tag, words in _LISTED.items()}


def checked(element: Element) -> Element:
    words = WORDS.get(element.tag)
    if words is not None and not words.issuperset(element.attributes):
        wrong = next(name for name in element.attributes if name not in words)
        raise element.error(f"<{element.tag}>: {unknown('attribute', wrong, sorted(words))}")
    return element


def is_limited(element: Element, name: str, bounds: tuple[float, float], autolimits: bool) -> bool:
    """Whether a range is in force: as said, or, if nothing is said, where there is one."""
    word = element.get(name, "auto")
    if word not in ("true", "false", "auto"):
        raise element.error(f'<{element.tag} {name}="{word}">: expected true, false or auto')
    if word == "auto" and any(bounds) and not autolimits:
        raise element.error(
            f'<{element.tag}> has a range but does not say {name}="true" or "false" (autolimits is off)'
        )
    return word == "true" or (word == "auto" and bounds[0] < bounds[1])
