"""Two-layer networks in the proportional regime: the model, and random features."""
