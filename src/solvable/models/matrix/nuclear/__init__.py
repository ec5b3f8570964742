"""Nuclear-norm learning: least squares under a penalty on the trace, as a wide network with weight decay does."""
