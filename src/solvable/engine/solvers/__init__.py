"""Solvers of state evolution: members of one interface, each at its best on another kind of sides."""
