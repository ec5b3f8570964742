"""Two-layer networks whose first layer takes one giant gradient step before the second is trained."""
