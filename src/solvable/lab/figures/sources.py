"""The publications whose numbers we reproduce."""

from __future__ import annotations

from solvable.lab.figures.entry import Source

GYORGYI = Source(
    "Györgyi",
    "First-order transition to perfect generalization in a neural network with binary synapses",
    1990,
    "Phys. Rev. A 41, 7097",
)
WU_VERDU = Source(
    "Wu, Verdú",
    "Rényi information dimension: fundamental limits of almost lossless analog compression",
    2010,
    "IEEE Trans. Inf. Theory 56, 3721",
)
MONDELLI_MONTANARI = Source(
    "Mondelli, Montanari",
    "Fundamental limits of weak recovery with applications to phase retrieval",
    2017,
    "arXiv:1708.05932",
)
BARBIER = Source(
    "Barbier, Krzakala, Macris, Miolane, Zdeborová",
    "Optimal errors and phase transitions in high-dimensional generalized linear models",
    2019,
    "PNAS 116, 5451, arXiv:1708.03395",
)
AUBIN = Source(
    "Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová",
    "The committee machine: computational to statistical gaps in learning a two-layers neural network",
    2018,
    "NeurIPS, arXiv:1806.05451",
)
MAILLARD = Source(
    "Maillard, Loureiro, Krzakala, Zdeborová",
    "Phase retrieval in high dimensions: statistical and computational phase transitions",
    2020,
    "NeurIPS, arXiv:2006.05228",
)
BEN_AROUS = Source(
    "Ben Arous, Gheissari, Jagannath",
    "Online stochastic gradient descent on non-convex losses from high-dimensional inference",
    2021,
    "JMLR 22, arXiv:2003.10409",
)
ABBE = Source(
    "Abbe, Boix-Adserà, Misiakiewicz",
    "SGD learning on neural networks: leap complexity and saddle-to-saddle dynamics",
    2023,
    "COLT, arXiv:2302.11055",
)
DAMIAN = Source(
    "Damian, Pillaud-Vivien, Lee, Bruna",
    "Computational-statistical gaps in Gaussian single-index models",
    2024,
    "COLT, arXiv:2403.05529",
)
TROIANI = Source(
    "Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala",
    "Fundamental computational limits of weak learnability in high-dimensional multi-index models",
    2024,
    "AISTATS 2025, arXiv:2405.15480",
)
MAILLARD_TROIANI = Source(
    "Maillard, Troiani, Martin, Krzakala, Zdeborová",
    "Bayes-optimal learning of an extensive-width neural network from quadratically many samples",
    2024,
    "NeurIPS, arXiv:2408.03733",
)
ERBA = Source(
    "Erba, Troiani, Zdeborová, Krzakala",
    "The nuclear route: sharp asymptotics of ERM in overparameterized quadratic networks",
    2025,
    "NeurIPS, arXiv:2505.17958",
)
GIRARDIN = Source(
    "Girardin, Troiani, Xu, Erba, Krzakala, Zdeborová",
    "How width and data shape generalization scaling laws in quadratic neural networks",
    2026,
    "arXiv:2606.28242",
)
DONOHO_TANNER = Source(
    "Donoho, Tanner",
    "Counting faces of randomly projected polytopes when the projection radically lowers dimension",
    2009,
    "J. Amer. Math. Soc. 22, 1",
)
HASTIE = Source(
    "Hastie, Montanari, Rosset, Tibshirani",
    "Surprises in high-dimensional ridgeless least squares interpolation",
    2022,
    "Ann. Statist. 50, 949, arXiv:1903.08560",
)
VILUCCHIO = Source(
    "Vilucchio, Troiani, Erba, Krzakala",
    "Asymptotic characterisation of robust empirical risk minimisation performance in the presence of outliers",
    2023,
    "arXiv:2305.18974",
)
