"""The verbs on one model and one learner, each in a file of its name: predict, simulate, thresholds, optimize."""
