"""Tasks as a VecEnv of stable-baselines3, which has vector environments of its own kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from .gym import VectorEnvironment


class StableBaselinesEnvironments(VecEnv):
    """Many environments of a task. As stable-baselines3 expects, what is over begins anew in the same step, and its last
    observation is in info["terminal_observation"]. Options are those of `VectorEnvironment`."""

    def __init__(self, task: str, num_envs: int, **options: Any) -> None:
        self.environments = VectorEnvironment(task, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        self.render_mode = self.environments.render_mode
        self._seed_of_next: int | None = None
        self._actions = np.zeros(self.environments.action_space.shape or ())
        spaces = self.environments.single_observation_space, self.environments.single_action_space
        super().__init__(num_envs, *spaces)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Of the next reset: environment k gets seed + k."""
        self._seed_of_next = seed
        return [None if seed is None else seed + k for k in range(self.num_envs)]

    def reset(self) -> np.ndarray:
        observation, _ = self.environments.reset(seed=self._seed_of_next)
        self._seed_of_next = None
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.environments.step(self._actions)
        infos = [_one(info, k) for k in range(self.num_envs)]
        for k in np.flatnonzero(terminated | truncated).tolist():
            infos[k] = _one(info["final_info"], k)
            infos[k]["terminal_observation"] = info["final_obs"][k]
            infos[k]["TimeLimit.truncated"] = bool(truncated[k] and not terminated[k])
        return observation, reward, terminated | truncated, infos

    def close(self) -> None:
        self.environments.close()

    def get_images(self) -> list[np.ndarray]:
        return list(self.environments.render() or ())

    # all environments are one object: attributes and methods are asked of it ----------------------------------------------

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.environments, attr_name) for _ in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.environments, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        return [getattr(self.environments, method_name)(*method_args, **method_kwargs) for _ in self._chosen(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._chosen(indices)]

    def _chosen(self, indices: Any) -> Iterable[int]:
        if indices is None:
            return range(self.environments.num_envs)
        return [indices] if isinstance(indices, int) else indices


def _one(info: Mapping[str, Any], k: int) -> dict[str, Any]:
    """What is known of one environment."""
    known = [name for name in info if not name.startswith(("_", "final")) and info[f"_{name}"][k]]
    return {name: float(info[name][k]) for name in known}
