"""Rotations, spatial vectors and inertias as plain Python on tuples; every function may be traced."""
