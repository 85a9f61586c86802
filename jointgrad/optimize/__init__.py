"""Optimisation through motions: controls (shooting, iLQR), parameters (identification), and gradient-free baselines."""
