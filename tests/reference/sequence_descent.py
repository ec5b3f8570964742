"""Descent on T tokens with all d weights, in plain NumPy: what reduced runs must have the law of."""

from __future__ import annotations

import numpy as np


def _softmax_step(q, y):
    """Minus half the gradient of |y - softmax(q q^T)|^2 in q, by the chain rule."""
    scores = np.outer(q, q)
    A = np.exp(scores - scores.max(axis=1, keepdims=True))
    A /= A.sum(axis=1, keepdims=True)
    G = A - y
    S = A * (G - np.sum(G * A, axis=1, keepdims=True))
    return S @ q + S.T @ q


def run(model, learner, alpha, d, seed):
    """The cosine after round(alpha d) samples for every alpha, of the models and students of the tests."""
    rng = np.random.default_rng(1000 + seed)
    T, omega, places = model.tokens, model.positional, learner.positions
    plain = learner.student == "plain"
    D = T * d if plain else d
    truth, place = np.zeros(d), np.zeros(d)
    truth[0], place[1] = 1.0, float(places)
    s = np.array([1.0, -1.0]) if places else np.zeros(T)
    shift = model.encoding * np.array([1.0, -1.0]) if model.encoding else 0.0
    w = np.zeros(D)
    where = [t * d for t in range(T)] if plain else [0, 1][: 1 + places]
    start = np.array(learner.start)
    w[where] = start
    rest = rng.standard_normal(D)
    rest[where] = 0.0
    w += rest * np.sqrt(1 - np.sum(start**2)) / np.linalg.norm(rest)
    h, found = 1e-6, []
    for n in range(1, round(alpha[-1] * d) + 1):
        X = rng.standard_normal((T, d))
        z = X[:, 0]
        y = _label(model, z + shift, omega) + np.sqrt(model.noise) * rng.standard_normal(1)
        if learner.student == "attention":
            inputs = X + s[:, None] * place
            q = inputs @ w
            if model.target == "softmax":
                delta = _softmax_step(q, y)
            else:
                slopes = np.array(
                    [(_label(model, q + h * e, 0) - _label(model, q - h * e, 0)) / (2 * h) for e in np.eye(T)]
                )
                delta = np.ravel(slopes) * np.squeeze(_label(model, q, 0) - y)
            g = delta @ inputs
        else:
            x = X.ravel() if plain else X.sum(axis=0) / np.sqrt(T)
            g_of = learner.activation.numpy
            field = np.array([[x @ w - h], [x @ w], [x @ w + h]])
            low, value, high = g_of(field)
            g = float((value - y[0]) * (high - low) / (2 * h)) * x
        w = w - learner.learning_rate / D * g
        w /= np.linalg.norm(w)
        if n in np.round(alpha * d):
            found.append(np.linalg.norm(w[where]) if plain else w[0])
    return found


def _label(model, z, omega):
    if model.target == "softmax":
        A = np.exp(np.outer(z, z))
        A /= A.sum(axis=1, keepdims=True)
        if not omega:
            return A
        places = np.exp(model.place**2 * np.array([[1.0, -1.0], [-1.0, 1.0]]))
        return (1 - omega) * A + omega * places / places.sum(axis=1, keepdims=True)
    if model.target.projections == 1:
        return np.sum(model.target.numpy(z[:, None]), keepdims=True) / np.sqrt(model.tokens)
    return model.target.numpy(z)[None]
