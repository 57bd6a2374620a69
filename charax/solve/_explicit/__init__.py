"""Explicit Runge–Kutta integration: fixed steps, adaptive steps, and their gradients."""
