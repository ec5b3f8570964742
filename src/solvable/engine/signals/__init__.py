"""The signal sides: separable weights, penalised weights, and matrices known by their spectra."""
