"""Models on disk: the recipe of the world as JSON, and every parameter as an array, in one .npz file without pickle.

Compiled indices are not kept. They say where the engine reads and writes, and a file may come from anyone: so the world is
compiled again from its description, through the same checks as any other, and gets its parameters by `replace`.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from typing import Any

import numpy as np

from ..files.npz import read_npz
from ..model import constraints
from ..model.arguments import reading
from ..model.arrays import PARAMS, Model
from ..model.contact_pairs import Default, Rule
from ..model.description import Actuator, Description, Joint, Link, Shape, Tendon
from ..model.errors import InputError, ModelError
from ..model.laws import Implicit, Impulse, Spring
from ..model.parts import PlacedRobot
from ..model.recipe import Recipe
from ..model.renamed import renamed
from ..model.world import World
from .blueprint import MLP, graft

FORMAT = "jointgrad model 1"
# what a recipe is made of
KINDS = {
    kind.__name__: kind
    for kind in (
        Actuator, Description, Implicit, Impulse, Joint, Link, MLP, PlacedRobot, Recipe, Rule, Shape, Spring, Tendon,
        *constraints.Constraint.__subclasses__(),
    )
} | {"Placed": PlacedRobot}  # fmt: skip  # as files of 0.1 call it


def save_model(model: Model, path: Any) -> None:
    """Write a model, once it is sure that the file makes the same one."""
    if model.topology.recipe is None:
        raise InputError("this model does not know from what it was made; one that World.compile gives can be saved")
    arrays = {f"param.{name}": array for name, array in model.params.items()}
    recipe = _written(model.topology.recipe, arrays)
    text = json.dumps({"format": FORMAT, "recipe": recipe}).encode()
    if not _is_same(_made(json.loads(text)["recipe"], arrays), model):
        raise InputError("the world of this model was changed after it was compiled: compile it again, then save it")
    with open(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, model=np.frombuffer(text, np.uint8), **arrays)


def load_model(path: Any) -> Model:
    """The model that a file of `Model.save` holds. Nothing in it is evaluated, and no other file is opened: the meshes of its
    shapes are not seen."""
    what = "a model that jointgrad saved"
    with reading(path, what):
        arrays = read_npz(path, what)
        said = json.loads(arrays.pop("model").tobytes().decode())
        if said["format"] != FORMAT:
            raise ValueError(f'it does not say "{FORMAT}"')
        try:
            return _made(said["recipe"], arrays)
        except (ModelError, InputError) as reason:
            raise InputError(f"{path} holds a model that cannot be: {reason}") from None


def _is_same(a: Model, b: Model) -> bool:
    own = [{f.name: getattr(m.topology, f.name) for f in dataclasses.fields(m.topology)} for m in (a, b)]
    unlike = ("recipe", "looks")  # meshes are left out of looks
    return (
        all(own[0][name] == own[1][name] for name in own[0] if name not in unlike)
        and np.array_equal(a._initial, b._initial)
        and all(a.params[name].tobytes() == b.params[name].tobytes() for name in PARAMS)
    )


def _made(recipe: Any, arrays: dict[str, np.ndarray]) -> Model:
    """The model of a recipe, with the parameters of a file."""
    found = _read(recipe, arrays)
    if not isinstance(found, Recipe):
        raise ValueError("it holds no recipe")
    world = World(**found.world)
    world.placed, world.rules = list(found.placed), list(found.rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were heard when the world was first compiled
        model = world.compile(**found.compile)
        for given in found.grafts:
            model = graft(model, **given)
    arrays = {renamed(name): x for name, x in arrays.items()}
    given = {name: arrays[f"param.{name}"] for name in PARAMS}
    return model.replace({name: x for name, x in given.items() if x.tobytes() != model.params[name].tobytes()})


# values -----------------------------------------------------------------------------------------------------------------


def _written(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; arrays of numbers go beside it."""
    if isinstance(value, np.ndarray) and value.dtype in (np.float64, np.int64):
        arrays[f"array.{len(arrays)}"] = value
        return {"array": f"array.{len(arrays) - 1}"}
    if isinstance(value, np.ndarray | np.generic):
        return _written(value.tolist(), arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_written(x, arrays) for x in value]
    if isinstance(value, tuple):
        return {"tuple": [_written(x, arrays) for x in value]}
    if isinstance(value, dict):
        return {"dict": [[_written(k, arrays), _written(v, arrays)] for k, v in value.items()]}
    if value is Default:
        return {"default": None}
    if KINDS.get(type(value).__name__) is type(value):
        return {"kind": type(value).__name__, "fields": {k: _written(v, arrays) for k, v in vars(value).items()}}
    raise InputError(f"a model with a {type(value).__name__} in its description cannot be saved: {value!r:.100}")


def _read(said: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The converse."""
    if isinstance(said, list):
        return [_read(x, arrays) for x in said]
    if not isinstance(said, dict):
        return said
    if "array" in said:
        return arrays[said["array"]]
    if "tuple" in said:
        return tuple(_read(x, arrays) for x in said["tuple"])
    if "dict" in said:
        pairs = ((_read(k, arrays), _read(v, arrays)) for k, v in said["dict"])
        return {renamed(k) if isinstance(k, str) else k: v for k, v in pairs}
    if "default" in said:
        return Default
    return _record(KINDS[said["kind"]], {renamed(name): _read(x, arrays) for name, x in said["fields"].items()})


def _record(kind: type, fields: dict[str, Any]) -> Any:
    if kind is Shape:
        fields["mesh"] = ""  # the path of a file on somebody's machine
    if kind is not Description:
        return kind(**fields)
    robot = Description(fields.pop("name"), fields.pop("base"))
    if fields.keys() != vars(robot).keys() - {"name", "base"}:
        raise ValueError("a robot has other parts than robots have")
    for name, value in fields.items():
        if type(value) is not type(getattr(robot, name)):
            raise ValueError(f'"{name}" of a robot is a {type(value).__name__}')
        setattr(robot, name, value)
    return robot
