"""Learning by descent, sample by sample or on a batch: what a network trained by gradients learns of a target."""
