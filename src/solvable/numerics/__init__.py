"""Quadrature, fixed points and roots: numerical methods that know no physics."""
