"""The output sides: labels read by their posterior, by a loss, or as plain Gaussian noise."""
