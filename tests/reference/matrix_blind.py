"""Blind reference values for the matrix models: plain NumPy/SciPy simulations at finite size.

Written from the definitions of the models alone, without reading the package or its theory notes: the numbers in
``matrix_blind.json`` are independent of the code they check.  ``OPENBLAS_NUM_THREADS=1 python matrix_blind.py out.json
denoise bilinear ridge psd bayes descent rank`` adds the entries not in out.json yet.  A section is a function of an
rng, the size d and parameters q; its docstring is the "what".  p = round(rho d), n = round(alpha d^2).
"""

import json
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "matrix_blind.json")


@lru_cache
def triangle(d):
    """Upper-triangle indices, weights (1 or sqrt 2) of the packing, and the packed position of every entry."""
    i, j = np.triu_indices(d)
    where = np.zeros((d, d), int)
    where[i, j] = where[j, i] = np.arange(len(i))
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0)), where


def pack(s):
    """Vector of a symmetric matrix, with <pack G, pack S> = Tr[G S]."""
    i, j, weight, _ = triangle(s.shape[-1])
    return s[..., i, j] * weight


def unpack(v, d):
    """Inverse of pack."""
    return (v / triangle(d)[2])[..., triangle(d)[3]]


def target(rng, d, q):
    """Target A*, and W if it is a network W^T W / sqrt(p d); else diagonal, as noise and features are invariant."""
    if "rho" in q:
        w = rng.standard_normal((round(q["rho"] * d), d))
        return w.T @ w / np.sqrt(w.size), w
    t = np.arange(1.0, d + 1) ** -q["exponent"] if "exponent" in q else np.repeat([1.0, -1.0], d // 2)
    return np.diag(t / np.sqrt(np.mean(t**2))), None


def regression(rng, d, q):
    """A*, W, packed features (xx: x x^T - I over sqrt d; goe: variance 1/d, diagonal 2/d) and labels."""
    (a, w), (i, j, weight, _) = target(rng, d, q), triangle(d)
    n, goe = round(q["alpha"] * d * d), q["features"] == "goe"
    x = rng.standard_normal((n, len(i) if goe else d))
    phi = x * np.sqrt(2.0 / d) if goe else (x[:, i] * x[:, j] - (i == j)) * (weight / np.sqrt(d))
    return a, w, phi, phi @ pack(a) + np.sqrt(q["Delta"]) * rng.standard_normal(n)


def psd_fit(phi, y, d, lam, tol=1e-10, most=60000):
    """PSD S minimising (1/d^2)|y - phi s|^2 + (lam/d) Tr S = s.H s/2 - b.s + ..., with H, b and a relative duality gap:
    a scaled residual u with (2/d^2) sum_mu u_mu G_mu <= (lam/d) I is dual feasible, worth (2 u.y - |u|^2)/d^2."""
    h, b, v = 2 / d**2 * (phi.T @ phi), 2 / d**2 * (phi.T @ y), np.ones(phi.shape[1])
    for _ in range(60):
        v = h @ (v / np.linalg.norm(v))
    step, s, z, theta = 1 / (1.02 * np.linalg.norm(v)), 0 * b, 0 * b, 1.0
    for it in range(1, most + 1):
        e, u = np.linalg.eigh(unpack(z - step * (h @ z - b), d))
        new = pack((u * np.maximum(e - step * lam / d, 0)) @ u.T)
        theta = 1.0 if (z - new) @ (new - s) > 0 else theta
        nxt = (1 + np.sqrt(1 + 4 * theta**2)) / 2
        z, s, theta = new + (theta - 1) / nxt * (new - s), new, nxt
        if it % 50 == 0:
            res = y - phi @ s
            top = np.linalg.eigvalsh(unpack(b - h @ s, d))[-1]
            u = res * min(lam / d / max(top, 1e-300), res @ y / (res @ res))
            gap = 1 - (2 * u @ y - u @ u) / (res @ res + lam * d * np.trace(unpack(s, d)))
            if gap < tol:
                break
    return unpack(s, d), h, b, gap


def denoise(rng, d, q):
    """Oracle denoising. Y = A* + sqrt(D) Z with Z from the GOE (off-diagonal variance 1/d, diagonal 2/d); eigenvectors
    of Y kept, eigenvalues set to v_i^T A* v_i (uses the truth). mse: ||A_hat - A*||_F^2 / d, mean over draws. Targets:
    network W^T W / sqrt(p d); signs, half +1 and half -1; power1.2, k^-1.2 with mean square one."""
    a = target(rng, d, q)[0]
    v = np.linalg.eigh(a + unpack(rng.standard_normal(d * (d + 1) // 2) * np.sqrt(2 * q["D"] / d), d))[1]
    return [(np.sum(a**2) - np.sum(np.sum(v * (a @ v), 0) ** 2)) / d]


def psd(rng, d, q):
    """Penalised PSD regression. Network target, y = Tr[G A*] + sqrt(Delta) noise, minimiser over PSD S of (1/d^2) sum
    (y - Tr G S)^2 + (lam/d) Tr S, by accelerated proximal gradient with restarts, to a certified relative duality gap
    below 1e-10. mse: ||S - A*||_F^2/d; fit: (1/d^2) sum of squared residuals; penalty: (lam/d) Tr S; rank: fraction of
    eigenvalues above 1e-6; means over data sets. features xx: (x x^T - I)/sqrt d; goe: variance 1/d, diagonal 2/d."""
    a, _, phi, y = regression(rng, d, q)
    s, _, _, gap = psd_fit(phi, y, d, q["lam"])
    q["worst_gap"] = max(q.get("worst_gap", 0.0), gap)
    fit, top = np.sum((y - phi @ pack(s)) ** 2) / d**2, np.mean(np.linalg.eigvalsh(s) > 1e-6)
    return [np.sum((s - a) ** 2) / d, fit, q["lam"] / d * np.trace(s), top]


def ridge(rng, d, q):
    """Ridge regression over all symmetric S. Network target, y = Tr[G A*] + sqrt(Delta) noise, exact minimiser of
    (1/d^2) sum (y - Tr G S)^2 + (lam/d) ||S||_F^2. mse: ||S - A*||_F^2/d; fit: (1/d^2) sum of squared residuals; means
    over data sets. features xx: (x x^T - I)/sqrt d with x ~ N(0, I); goe: off-diagonal variance 1/d, diagonal 2/d."""
    a, _, phi, y = regression(rng, d, q)
    s = np.linalg.solve(phi.T @ phi + q["lam"] * d * np.eye(phi.shape[1]), phi.T @ y)
    return [np.sum((s - pack(a)) ** 2) / d, np.sum((y - phi @ s) ** 2) / d**2]


def bayes(rng, d, q):
    """Posterior mean of the network target by Hamiltonian Monte Carlo on W (prior N(0,1), noise variance Delta). Two
    chains start from the truth (an exact posterior sample, hence stationary at once) and two from the prior; steps
    adapt in the first third, S = W^T W / sqrt(p d) is averaged over the rest. The mse ||E[S] - A*||_F^2/d is estimated
    without Monte Carlo bias by <S_1 - A*, S_2 - A*>/d for the averages of two chains: planted, the truth-started;
    random, the prior-started; pooled, all pairs. sample: ||S_t - A*||_F^2/(2d) along prior-started chains, equal to the
    mse at stationarity. between: variance of the chain means of ||S||_F^2 over that within. Means over data sets."""
    a, true, phi, y = regression(rng, d, q)
    phi, a, c = unpack(phi, d).reshape(len(y), -1), a.ravel(), 1 / np.sqrt(true.size)

    def energy(w):
        s = (w.swapaxes(1, 2) @ w).reshape(4, -1) * c
        r = s @ phi.T - y
        force = w + 2 * c / q["Delta"] * (w @ (r @ phi).reshape(4, d, d))
        return (w**2).sum((1, 2)) / 2 + (r**2).sum(1) / (2 * q["Delta"]), force, s

    w = np.concatenate([[true, true], rng.standard_normal((2, *true.shape))])
    eps, (u, g, s), chain = np.full(4, 0.02), energy(w), []
    for t in range(q["length"]):
        m, step = rng.standard_normal(w.shape), (eps * rng.uniform(0.8, 1.2, 4))[:, None, None]
        start, wn, gn = u + (m**2).sum((1, 2)) / 2, w, g
        for _ in range(q["leapfrog"]):
            m = m - step / 2 * gn
            wn = wn + step * m
            un, gn, sn = energy(wn)
            m = m - step / 2 * gn
        ok = np.log(rng.random(4)) < start - un - (m**2).sum((1, 2)) / 2
        w[ok], g[ok], u[ok], s[ok] = wn[ok], gn[ok], un[ok], sn[ok]
        chain.append(s.copy())
        eps = eps * np.exp((ok - 0.8) * (t < q["length"] // 3) * 2 / np.sqrt(t + 10))
    chain = np.array(chain[q["length"] // 3 :])
    err, norm = chain.mean(0) - a, (chain**2).sum(2)
    gram, sample = err @ err.T / d, np.mean((chain[:, 2:] - a) ** 2) * d / 2
    pooled, between = (gram.sum() - np.trace(gram)) / 12, norm.mean(0).var(ddof=1) / norm.var(0).mean()
    return [gram[0, 1], gram[2, 3], pooled, sample, between]


def descent(rng, d, q):
    """Full-batch gradient descent, noiseless labels: student of the target's width p, W0 iid N(0,1), W <- W - 0.1 W
    (sum_mu r_mu G_mu)/sqrt(p d), r = y_hat - y. Eight students per data set, 3000 steps (names with _long: 6000) or to
    losses (1/4) sum r^2 below 1e-12 n. single: mse ||S - A*||_F^2/d of S = W^T W / sqrt(p d), mean of the eight;
    averaged: mse of the mean of the eight S; loss: largest final loss over n of the eight. Means over data sets."""
    a, true, phi, y = regression(rng, d, q)
    w, c, a, rows = rng.standard_normal((8, *true.shape)), 1 / np.sqrt(true.size), pack(a), []
    for _ in range(2):
        for _ in range(3000):
            s = pack(w.swapaxes(1, 2) @ w) * c
            r = s @ phi.T - y
            loss = (r**2).mean(1) / 4
            if loss.max() < 1e-12:
                break
            w = w - 0.1 * c * (w @ unpack(r @ phi, d))
        rows += [((s - a) ** 2).sum(1).mean() / d, np.sum((s.mean(0) - a) ** 2) / d, loss.max()]
    return rows


def bilinear(rng, d, q):
    """Oracle denoising of a rectangular matrix. S = A B / sqrt(r), A d x r and B r x L iid N(0,1), L = beta d, r = rho
    d (rounded: width), Y = S + sqrt(kappa) Z with Z iid N(0,1); singular vectors of Y kept, each singular value set to
    u_i^T S v_i (uses the truth). mse: squared error per entry, ||S_hat - S||_F^2 / (d L), mean over draws."""
    r, length = round(q["rho"] * d), round(q["beta"] * d)
    s = rng.standard_normal((d, r)) @ rng.standard_normal((r, length)) / np.sqrt(r)
    u, _, vt = np.linalg.svd(s + np.sqrt(q["kappa"]) * rng.standard_normal(s.shape), full_matrices=False)
    return [(np.sum(s**2) - np.sum(np.sum(u * (s @ vt.T), 0) ** 2)) / s.size]


def rank(rng, d, q):
    """Rank-limited PSD regression, S = W^T W with W r x d, objective (1/d^2) sum (y - Tr G S)^2 + (lam/d) Tr S. Target
    with eigenvalues proportional to k^-1.25, mean square one (diagonal; the features are rotation invariant). L-BFGS on
    W from the rank-r truncation of the full PSD solution and from two random starts; mse ||S - A*||_F^2/d, fit (1/d^2)
    sum of squared residuals and objective are those of the lowest objective. truncation_best and random_best: share of
    data sets where the truncation start, or one of the random starts, reaches it (relative 1e-6). Means over data."""
    (a, _, phi, y), lam, row = regression(rng, d, q), q["lam"], []
    full, h, b, _ = psd_fit(phi, y, d, lam, tol=1e-6)
    e, u = np.linalg.eigh(full)

    def cost(flat):
        w = flat.reshape(-1, d)
        s = pack(w.T @ w)
        hs = h @ s
        value = s @ hs / 2 - b @ s + y @ y / d**2 + lam / d * np.sum(w**2)
        return value * d, 2 * d * (w @ (unpack(hs - b, d) + lam / d * np.eye(d))).ravel()

    for r in [3, 8]:
        starts = [(np.sqrt(np.maximum(e[-r:], 1e-3)) * u[:, -r:]).T]
        starts += [rng.standard_normal((r, d)) * np.sqrt(np.trace(full) / (r * d)) for _ in range(2)]
        opts = dict(jac=True, method="L-BFGS-B", options=dict(maxiter=3000, maxfun=6000, ftol=1e-12, gtol=1e-8))
        fits = [minimize(cost, w.ravel(), **opts) for w in starts]
        best = min(fits, key=lambda f: f.fun)
        s, hit = best.x.reshape(r, d).T @ best.x.reshape(r, d), [f.fun < best.fun * (1 + 1e-6) for f in fits]
        s, fit = s - a, np.sum((y - phi @ pack(s)) ** 2) / d**2
        row += [np.sum(s**2) / d, fit, best.fun / d, hit[0], any(hit[1:])]
    return row


NAMES = dict(denoise="mse", bilinear="mse", ridge="mse fit", psd="mse fit penalty rank")
NAMES["bayes"] = "planted random pooled sample between"
NAMES["descent"] = "single averaged loss single_long averaged_long loss_long"
NAMES["rank"] = " ".join(f"r{r}.{x}" for r in [3, 8] for x in "mse fit objective truncation_best random_best".split())


def jobs():
    """Section, id, parameters, sizes, numbers of runs and seed of every set of entries."""
    for c, (x, v) in enumerate([(0.25, 0.3), (0.7, 1.1), (1.4, 0.5), ("signs", 0.5), ("power1.2", 0.4)]):
        q = [dict(rho=x)] * 3 + [dict(target="signs"), dict(exponent=1.2)]
        yield "denoise", f"{'rho' * (c < 3)}{x}.D{v}", q[c] | dict(D=v), [200, 400 if c == 4 else 600], [80, 24], [1, c]
    for c, (rho, beta, v) in enumerate([(0.4, 1.5, 0.6), (1.3, 1, 0.9), (0.25, 2.5, 0.3), (0.25, 2.5, 0.3)]):
        sizes, q = [150, 450] if c < 3 else [160, 480], dict(rho=rho, beta=beta, kappa=v)
        yield "bilinear", f"rho{rho}.beta{beta}.kappa{v}.d{sizes[0]}-{sizes[1]}", q, sizes, [100, 24], [6, c]
    for goe, kind in enumerate(["xx", "goe"]):
        for alpha in [0.25, 0.32]:
            q = dict(features=kind, rho=0.5, alpha=alpha, Delta=0.0, step=0.1)
            yield "descent", f"{kind}.alpha{alpha}", q, [24, 40], [20, 12], [5, goe]
        q = dict(features=kind, alpha=1.0, Delta=0.1, lam=0.1, exponent=1.25)
        yield "rank", kind, q, [60, 100], [10, 4], [7, goe]
    q = dict(features="xx", rho=0.5, alpha=0.5, Delta=0.25, leapfrog=24, length=600)
    yield "bayes", "xx", q, [12, 20], [80, 24], [4, 0]
    points = [(0.4, 0.45, 0.3, 0.15), (0.8, 0.25, 0.1, 0.05), (0.15, 0.7, 1.0, 0.6), (0.3, 0.45, 0.5, 1e-3)]
    for s, m, big in [([24, 48], [40, 16], [100, 40]), ([40, 60], [12, 8], [12, 8])]:
        for c, (rho, alpha, v, lam) in enumerate([*points, (0.5, 0.35, 0.2, 0.1), (0.3, 0.8, 0.5, 0.3)]):
            for goe, kind in enumerate(["xx", "goe"]):
                q = dict(features=kind, rho=rho, alpha=alpha, Delta=v, lam=lam)
                tail = f"{kind}.rho{rho}.alpha{alpha}.lam{lam}.d{s[0]}-{s[1]}"
                yield "ridge" if c > 3 else "psd", tail, q, s, big if c > 3 or c + goe < 2 else m, [2 + (c > 3), c, goe]


if __name__ == "__main__":
    for section, tail, q, sizes, counts, seed in jobs():
        entries, names = json.loads(OUT.read_text()) if OUT.exists() else [], NAMES[section].split()
        if section not in sys.argv[2:] or f"{section}.{tail}.{names[-1]}" in {e["id"] for e in entries}:
            continue
        one, rng, both = globals()[section], np.random.default_rng, zip(sizes, counts, strict=True)
        rows = [np.array([one(rng([*seed, d, k]), d, q) for k in range(m)]) for d, m in both]
        q |= {k: [round(q[x] * d**e) for d in sizes] for k, x, e in [("width", "rho", 1), ("n", "alpha", 2)] if x in q}
        for i, name in enumerate(names):
            x = dict(id=f"{section}.{tail}.{name}", what=" ".join(one.__doc__.split()), params=dict(quantity=name, **q))
            x |= dict(sizes=sizes, runs=counts, mean=[float(f"{r[:, i].mean():.7g}") for r in rows])
            entries.append(x | dict(stderr=[float(f"{r[:, i].std(ddof=1) / len(r) ** 0.5:.3g}") for r in rows]))
            print(*[entries[-1][k] for k in ["id", "runs", "mean", "stderr"]], flush=True)
        OUT.write_text(json.dumps(entries, indent=1) + "\n")
