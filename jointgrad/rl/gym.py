"""Tasks as gymnasium environments, one or many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..model.errors import InputError
from .batch import Batch
from .catalogue import make_task
from .picture import Camera, Window
from .randomise import randomisation
from .task import Task

RENDER_MODES = ("human", "rgb_array")


def spaces(task: Task) -> tuple[Box, Box]:
    """What one environment shows and takes."""
    low, high = (limit.astype(np.float32) for limit in task.action_limits)
    seen = Box(-np.inf, np.inf, (task.n_observations,), np.float64)
    return seen, Box(low, high, dtype=np.float32)


def _task(name: str, options: dict[str, Any], limit: int | None = None) -> Task:
    if "limit" in options:
        raise InputError("the limit of an environment's episodes is given to gymnasium, as max_episode_steps")
    return make_task(name, **options, **({} if limit is None else {"limit": limit}))


def _metadata(task: Task, render_mode: str | None) -> dict[str, Any]:
    if render_mode not in (None, *RENDER_MODES):
        raise InputError(f"render_mode must be one of {', '.join(RENDER_MODES)}, or None, but is {render_mode!r}")
    return {"render_modes": list(RENDER_MODES), "render_fps": round(1 / task.control_dt)}


class Environment(gymnasium.Env):
    """One environment. Episodes end by failure alone: `gymnasium.make` adds the limit of time."""

    # gymnasium.make looks at the class
    metadata = {"render_modes": list(RENDER_MODES)}

    def __init__(
        self, task: str, render_mode: str | None = None, width: int = 480, height: int = 480, randomise: Any = None,
        threads: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.task = _task(task, options)
        self.metadata = _metadata(self.task, render_mode)
        self.render_mode = render_mode
        self.batch = Batch(self.task, 1, randomisation(randomise), threads)
        self.observation_space, self.action_space = spaces(self.task)
        self._camera, self._window = Camera(width, height), Window()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.batch.generators = [self.np_random]
        self.batch.reset(np.ones(1, dtype=bool))
        self._shown()
        return self.batch.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        result = self.batch.step(np.asarray(action)[None])
        info = {name: float(value[0]) for name, value in result.info.items()}
        self._shown()
        return self.batch.observe()[0], float(result.reward[0]), bool(result.terminated[0]), False, info

    def render(self) -> np.ndarray | None:
        """A picture, in the mode "rgb_array"; in the mode "human" the browser is up to date anyway."""
        return self._camera.picture(self.batch, 0) if self.render_mode == "rgb_array" else None

    def _shown(self) -> None:
        if self.render_mode == "human":
            self._window.show(self.batch)

    def close(self) -> None:
        self._window.close()


class VectorEnvironment(VectorEnv):
    """Many environments that move in one call of the engine, with every way of beginning anew that gymnasium knows."""

    def __init__(
        self, task: str, num_envs: int, max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, render_mode: str | None = None, width: int = 480,
        height: int = 480, randomise: Any = None, threads: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.task, self.num_envs, self.render_mode = _task(task, options, max_episode_steps), num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**_metadata(self.task, render_mode), "autoreset_mode": self.autoreset_mode}
        self.batch = Batch(self.task, num_envs, randomisation(randomise), threads)
        self.single_observation_space, self.single_action_space = spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_over = np.zeros(num_envs, dtype=bool)
        self._cameras, self._window = [Camera(width, height) for _ in range(num_envs)], Window()

    # beginning ----------------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes: in all environments, or where options["reset_mask"] is true. An int seeds environment k with seed + k."""
        rows = self._rows((options or {}).get("reset_mask"))
        self._seed(seed, rows)
        self.batch.reset(rows)
        self._is_over[rows] = False
        self._shown()
        return self.batch.observe(), {}

    def _rows(self, mask: Any) -> np.ndarray:
        if mask is None:
            return np.ones(self.num_envs, dtype=bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise InputError(f'options["reset_mask"] must be an array of {self.num_envs} booleans, some of them true')
        return mask

    def _seed(self, seed: int | Sequence[int | None] | None, rows: np.ndarray) -> None:
        if seed is None:
            return
        seeds = [int(seed) + k for k in range(self.num_envs)] if isinstance(seed, int | np.integer) else list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"there are {len(seeds)} seeds for {self.num_envs} environments")
        for k in np.flatnonzero(rows):
            if seeds[k] is not None:
                self.batch.generators[k], _ = gymnasium.utils.seeding.np_random(seeds[k])

    # moving -------------------------------------------------------------------------------------------------------------

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        fresh = self._due()
        result = self.batch.step(actions, idle=fresh)
        terminated = result.terminated & ~fresh
        truncated = (self.batch.now.age >= self.task.limit) & ~fresh
        self._is_over = terminated | truncated
        if fresh.any():
            self.batch.reset(fresh)
        info = _known(result.info, ~fresh)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._is_over.any():
            info = self._begun_again(result.info)
        self._shown()
        return self.batch.observe(), np.where(fresh, 0.0, result.reward), terminated, truncated, info

    def _due(self) -> np.ndarray:
        """Environments that begin anew instead of taking their action."""
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            return self._is_over
        if self.autoreset_mode is AutoresetMode.DISABLED and self._is_over.any():
            which = ", ".join(map(str, np.flatnonzero(self._is_over)))
            raise InputError(f'environments {which} are over: reset them first, with options={{"reset_mask": ...}}')
        return np.zeros(self.num_envs, dtype=bool)

    def _begun_again(self, info: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Reset what is over, and tell what it was like at the end."""
        over, last = self._is_over, self.batch.observe()
        final = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(over):
            final[k] = last[k]
        self.batch.reset(over)
        ends = {
            "final_obs": final,
            "_final_obs": over.copy(),
            "final_info": _known(info, over),
            "_final_info": over.copy(),
        }
        return {**_known(info, ~over), **ends}

    # looking ------------------------------------------------------------------------------------------------------------

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each, in the mode "rgb_array"; in the mode "human" the browser is up to date anyway."""
        if self.render_mode != "rgb_array":
            return None
        return tuple(camera.picture(self.batch, k) for k, camera in enumerate(self._cameras))

    def _shown(self) -> None:
        if self.render_mode == "human":
            self._window.show(self.batch)

    def close_extras(self, **kwargs: Any) -> None:
        self._window.close()


def _known(info: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """As gymnasium wants it: numbers by name, zero where they are not known, and beside them where they are."""
    found: dict[str, np.ndarray] = {}
    if rows.any():
        for name, value in info.items():
            found[name], found[f"_{name}"] = np.where(rows, value, 0.0), rows.copy()
    return found
