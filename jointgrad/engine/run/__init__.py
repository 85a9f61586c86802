"""What runs the kernels: NumPy arrays in and out, threads, checkpoints, rollouts and their derivatives."""
