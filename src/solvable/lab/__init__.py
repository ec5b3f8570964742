"""Grids of predictions and simulations: curves, phase diagrams, plots, files."""
