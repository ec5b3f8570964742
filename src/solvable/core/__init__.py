"""Models, learners, results, the registry of solved pairs, and the verbs that act on them."""
