"""Labels as weighted sets of points: the level sets of a target of several projections, and averages over them."""
