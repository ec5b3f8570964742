"""The publications behind the theories and algorithms, by key.

A key is the first author, the year and a word of the title. Docstrings cite a publication as [barbier2019optimal], and
every registered theory, simulation and set of thresholds names those it rests on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from solvable.core.errors import bad_parameter


@dataclasses.dataclass(frozen=True)
class Publication:
    """A publication: authors, title, year, and where it appeared."""

    authors: str
    title: str
    year: int
    where: str = ""

    def __str__(self) -> str:
        return f"{self.authors}, {self.title} ({self.year})" + (f", {self.where}" if self.where else "")

    @property
    def short(self) -> str:
        """Authors and year, of more than two authors the first."""
        names = self.authors.split(", ")
        return f"{names[0]} et al. {self.year}" if len(names) > 2 else f"{' and '.join(names)} {self.year}"


def cite(key: str | Publication) -> str:
    """The publication as a line to read."""
    check_references(key)
    return str(key if isinstance(key, Publication) else BIBLIOGRAPHY[key])


def check_references(references: str | Publication | Iterable[str | Publication]) -> tuple[str | Publication, ...]:
    """References as a tuple of known keys, and of publications given in full, as a model of one's own may name."""
    found = (references,) if isinstance(references, (str, Publication)) else tuple(references)
    for reference in found:
        if not isinstance(reference, Publication) and reference not in BIBLIOGRAPHY:
            takes = "a key of solvable.core.bibliography.BIBLIOGRAPHY, such as 'barbier2019optimal', or a Publication"
            raise bad_parameter("references", reference, takes)
    return found


BIBLIOGRAPHY = {
    "abbe2023sgd": Publication(
        "Abbe, Boix-Adserà, Misiakiewicz",
        "SGD learning on neural networks: leap complexity and saddle-to-saddle dynamics",
        2023,
        "COLT, arXiv:2302.11055",
    ),
    "anderson1965iterative": Publication(
        "Anderson",
        "Iterative procedures for nonlinear integral equations",
        1965,
        "J. ACM 12",
    ),
    "arnaboldi2024repetita": Publication(
        "Arnaboldi, Dandi, Krzakala, Pesce, Stephan",
        "Repetita iuvant: data repetition allows SGD to learn high-dimensional multi-index functions",
        2024,
        "arXiv:2405.15459",
    ),
    "arnaboldi2025asymptotics": Publication(
        "Arnaboldi, Loureiro, Stephan, Krzakala, Zdeborová",
        "Asymptotics of SGD in sequence-single index models and single-layer attention networks",
        2025,
        "arXiv:2506.02651",
    ),
    "arous2021online": Publication(
        "Ben Arous, Gheissari, Jagannath",
        "Online stochastic gradient descent on non-convex losses from high-dimensional inference",
        2021,
        "JMLR 22, arXiv:2003.10409",
    ),
    "aubin2018committee": Publication(
        "Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová",
        "The committee machine: computational to statistical gaps in learning a two-layers neural network",
        2018,
        "NeurIPS, arXiv:1806.05451",
    ),
    "ba2022high": Publication(
        "Ba, Erdogdu, Suzuki, Wang, Wu, Yang",
        "High-dimensional asymptotics of feature learning: how one gradient step improves the representation",
        2022,
        "NeurIPS, arXiv:2205.01445",
    ),
    "baik2005phase": Publication(
        "Baik, Ben Arous, Péché",
        "Phase transition of the largest eigenvalue for nonnull complex sample covariance matrices",
        2005,
        "Annals of Probability 33",
    ),
    "barbier2016mutual": Publication(
        "Barbier, Dia, Macris, Krzakala, Lesieur, Zdeborová",
        "Mutual information for symmetric rank-one matrix estimation: a proof of the replica formula",
        2016,
        "NeurIPS, arXiv:1606.04142",
    ),
    "barbier2017layered": Publication(
        "Barbier, Macris, Miolane",
        "The layered structure of tensor estimation and its mutual information",
        2017,
        "Allerton, arXiv:1709.10368",
    ),
    "barbier2019optimal": Publication(
        "Barbier, Krzakala, Macris, Miolane, Zdeborová",
        "Optimal errors and phase transitions in high-dimensional generalized linear models",
        2019,
        "PNAS 116, 5451, arXiv:1708.03395",
    ),
    "barbier2025optimal": Publication(
        "Barbier, Camilli, Nguyen, Pastore, Skerk",
        "Optimal generalisation and learning transition in extensive-width shallow neural networks near interpolation",
        2025,
        "arXiv:2501.18530",
    ),
    "barbier2026sharp": Publication(
        "Barbier, Nguyen",
        "Sharp feature-learning transitions and Bayes-optimal neural scaling laws in extensive-width networks",
        2026,
        "arXiv:2605.10395",
    ),
    "bayati2011dynamics": Publication(
        "Bayati, Montanari",
        "The dynamics of message passing on dense graphs, with applications to compressed sensing",
        2011,
        "IEEE Trans. Inf. Theory 57, 764, arXiv:1001.3448",
    ),
    "beck2009fast": Publication(
        "Beck, Teboulle",
        "A fast iterative shrinkage-thresholding algorithm for linear inverse problems",
        2009,
        "SIAM J. Imaging Sci. 2, 183",
    ),
    "benaych2011eigenvalues": Publication(
        "Benaych-Georges, Nadakuditi",
        "The eigenvalues and eigenvectors of finite, low rank perturbations of large random matrices",
        2011,
        "Advances in Mathematics 227",
    ),
    "benaych2012singular": Publication(
        "Benaych-Georges, Nadakuditi",
        "The singular values and vectors of low rank perturbations of large rectangular random matrices",
        2012,
        "J. Multivariate Analysis 111",
    ),
    "biane1997free": Publication(
        "Biane",
        "On the free convolution with a semi-circular distribution",
        1997,
        "Indiana Univ. Math. J. 46, 705",
    ),
    "boncoraglio2025bayes": Publication(
        "Boncoraglio, Troiani, Erba, Zdeborová",
        "Bayes optimal learning of attention-indexed models",
        2025,
        "NeurIPS, arXiv:2506.01582",
    ),
    "bun2016rotational": Publication(
        "Bun, Allez, Bouchaud, Potters",
        "Rotational invariant estimator for general noisy matrices",
        2016,
        "IEEE Trans. Inf. Theory 62, 7475, arXiv:1502.06736",
    ),
    "candes2020phase": Publication(
        "Candès, Sur",
        "The phase transition for the existence of the maximum likelihood estimate in high-dimensional "
        "logistic regression",
        2020,
        "Ann. Statist. 48, 27, arXiv:1804.09753",
    ),
    "chandrupatla1997new": Publication(
        "Chandrupatla",
        "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without using "
        "derivatives",
        1997,
        "Advances in Engineering Software 28",
    ),
    "chizat2019lazy": Publication(
        "Chizat, Oyallon, Bach",
        "On lazy training in differentiable programming",
        2019,
        "NeurIPS, arXiv:1812.07956",
    ),
    "cho2009kernel": Publication("Cho, Saul", "Kernel methods for deep learning", 2009, "NeurIPS"),
    "cover1965geometrical": Publication(
        "Cover",
        "Geometrical and statistical properties of systems of linear inequalities with applications in "
        "pattern recognition",
        1965,
        "IEEE Trans. Electron. Comput. 14, 326",
    ),
    "cui2024asymptotics": Publication(
        "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro",
        "Asymptotics of feature learning in two-layer networks after one gradient-step",
        2024,
        "ICML, arXiv:2402.04980",
    ),
    "cui2024phase": Publication(
        "Cui, Behrens, Krzakala, Zdeborová",
        "A phase transition between positional and semantic learning in a solvable model of dot-product attention",
        2024,
        "NeurIPS, arXiv:2402.03902",
    ),
    "damian2024computational": Publication(
        "Damian, Pillaud-Vivien, Lee, Bruna",
        "Computational-statistical gaps in Gaussian single-index models",
        2024,
        "COLT, arXiv:2403.05529",
    ),
    "dandi2024benefits": Publication(
        "Dandi, Troiani, Arnaboldi, Pesce, Zdeborová, Krzakala",
        "The Benefits of Reusing Batches for Gradient Descent in Two-Layer Networks: Breaking the Curse of Information "
        "and Leap Exponents",
        2024,
        "ICML, arXiv:2402.03220",
    ),
    "dandi2024random": Publication(
        "Dandi, Pesce, Cui, Krzakala, Lu, Loureiro",
        "A random matrix theory perspective on the spectrum of learned features and asymptotic generalization "
        "capabilities",
        2024,
        "arXiv:2410.18938",
    ),
    "dandi2024two": Publication(
        "Dandi, Krzakala, Loureiro, Pesce, Stephan",
        "How two-layer neural networks learn, one (giant) step at a time",
        2024,
        "JMLR 25, arXiv:2305.18270",
    ),
    "dandi2025computational": Publication(
        "Dandi, Pesce, Zdeborova, Krzakala",
        "The computational advantage of depth: learning high-dimensional hierarchical functions with gradient descent",
        2025,
        "arXiv:2502.13961",
    ),
    "dandi2026deep": Publication(
        "Dandi, Vilucchio, Arnaboldi, Tabanelli, Krzakala",
        "Deep Learning as Neural Low-Degree Filtering: a Spectral Theory of Hierarchical Feature Learning",
        2026,
        "arXiv:2605.13612",
    ),
    "defilippis2024dimension": Publication(
        "Defilippis, Loureiro, Misiakiewicz",
        "Dimension-free deterministic equivalents and scaling laws for random feature regression",
        2024,
        "NeurIPS, arXiv:2405.15699",
    ),
    "defilippis2025optimal": Publication(
        "Defilippis, Dandi, Mergny, Krzakala, Loureiro",
        "Optimal spectral transitions in high-dimensional multi-index models",
        2025,
        "arXiv:2502.02545",
    ),
    "deshpande2014information": Publication(
        "Deshpande, Montanari",
        "Information-theoretically optimal sparse PCA",
        2014,
        "ISIT, arXiv:1402.2238",
    ),
    "donoho2009counting": Publication(
        "Donoho, Tanner",
        "Counting faces of randomly projected polytopes when the projection radically lowers dimension",
        2009,
        "J. Amer. Math. Soc. 22, 1",
    ),
    "donoho2009message": Publication(
        "Donoho, Maleki, Montanari",
        "Message-passing algorithms for compressed sensing",
        2009,
        "PNAS 106, 18914, arXiv:0907.3574",
    ),
    "dozier2007empirical": Publication(
        "Dozier, Silverstein",
        "On the empirical distribution of eigenvalues of large dimensional information-plus-noise-type matrices",
        2007,
        "J. Multivariate Analysis 98",
    ),
    "elkaroui2010spectrum": Publication(
        "El Karoui", "The spectrum of kernel random matrices", 2010, "Annals of Statistics 38, 1"
    ),
    "erba2024bilinear": Publication(
        "Erba, Troiani, Biggio, Maillard, Zdeborová",
        "Bilinear sequence regression",
        2024,
        "arXiv:2410.18858",
    ),
    "erba2025nuclear": Publication(
        "Erba, Troiani, Zdeborová, Krzakala",
        "The nuclear route: sharp asymptotics of ERM in overparameterized quadratic networks",
        2025,
        "NeurIPS, arXiv:2505.17958",
    ),
    "gerace2020generalisation": Publication(
        "Gerace, Loureiro, Krzakala, Mézard, Zdeborová",
        "Generalisation error in learning with random features and the hidden manifold model",
        2020,
        "ICML, arXiv:2002.09339",
    ),
    "geweke1991efficient": Publication(
        "J. Geweke",
        "Efficient simulation from the multivariate normal and Student-t distributions subject to linear constraints",
        1991,
        "Computing Science and Statistics: Proceedings of the 23rd Symposium on the Interface, 571",
    ),
    "ghorbani2021linearized": Publication(
        "Ghorbani, Mei, Misiakiewicz, Montanari",
        "Linearized two-layers neural networks in high dimension",
        2021,
        "Annals of Statistics 49",
    ),
    "girardin2026width": Publication(
        "Girardin, Troiani, Xu, Erba, Krzakala, Zdeborová",
        "How width and data shape generalization scaling laws in quadratic neural networks",
        2026,
        "arXiv:2606.28242",
    ),
    "goldt2019dynamics": Publication(
        "Goldt, Advani, Saxe, Krzakala, Zdeborová",
        "Dynamics of stochastic gradient descent for two-layer neural networks in the teacher-student setup",
        2019,
        "NeurIPS, arXiv:1906.08632",
    ),
    "goldt2022gaussian": Publication(
        "Goldt, Loureiro, Reeves, Krzakala, Mézard, Zdeborová",
        "The Gaussian equivalence of generative models for learning with shallow neural networks",
        2022,
        "MSML, arXiv:2006.14709",
    ),
    "golub1979generalized": Publication(
        "Golub, Heath, Wahba",
        "Generalized cross-validation as a method for choosing a good ridge parameter",
        1979,
        "Technometrics 21, 215",
    ),
    "gyorgyi1990first": Publication(
        "Györgyi",
        "First-order transition to perfect generalization in a neural network with binary synapses",
        1990,
        "Phys. Rev. A 41, 7097",
    ),
    "hastie2022surprises": Publication(
        "Hastie, Montanari, Rosset, Tibshirani",
        "Surprises in high-dimensional ridgeless least squares interpolation",
        2022,
        "Ann. Statist. 50, 949, arXiv:1903.08560",
    ),
    "hu2023universality": Publication(
        "Hu, Lu",
        "Universality laws for high-dimensional learning with random features",
        2023,
        "IEEE Trans. Inf. Theory 69, arXiv:2009.07669",
    ),
    "jacot2020kernel": Publication(
        "Jacot, Şimşek, Spadaro, Hongler, Gabriel",
        "Kernel alignment risk estimator: risk prediction from training data",
        2020,
        "NeurIPS, arXiv:2006.09796",
    ),
    "javanmard2013state": Publication(
        "Javanmard, Montanari",
        "State evolution for general approximate message passing algorithms, with applications to spatial coupling",
        2013,
        "Information and Inference 2, 115, arXiv:1211.5164",
    ),
    "johnstone2001distribution": Publication(
        "Johnstone",
        "On the distribution of the largest eigenvalue in principal components analysis",
        2001,
        "Annals of Statistics 29",
    ),
    "kingma2015adam": Publication(
        "Kingma, Ba",
        "Adam: a method for stochastic optimization",
        2015,
        "ICLR, arXiv:1412.6980",
    ),
    "kovacevic2025spectral": Publication(
        "Kovačević, Zhang, Mondelli",
        "Spectral estimators for multi-index models: precise asymptotics and optimal weak recovery",
        2025,
        "COLT, arXiv:2502.01583",
    ),
    "ledoit2004well": Publication(
        "Ledoit, Wolf",
        "A well-conditioned estimator for large-dimensional covariance matrices",
        2004,
        "Journal of Multivariate Analysis 88",
    ),
    "lelarge2019fundamental": Publication(
        "Lelarge, Miolane",
        "Fundamental limits of symmetric low-rank matrix estimation",
        2019,
        "Probability Theory and Related Fields 173, arXiv:1611.03888",
    ),
    "lesieur2017statistical": Publication(
        "Lesieur, Miolane, Lelarge, Krzakala, Zdeborová",
        "Statistical and computational phase transitions in spiked tensor estimation",
        2017,
        "ISIT, arXiv:1701.08010",
    ),
    "li1991sliced": Publication(
        "Li",
        "Sliced inverse regression for dimension reduction",
        1991,
        "Journal of the American Statistical Association 86",
    ),
    "loureiro2021learning": Publication(
        "Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mézard, Zdeborová",
        "Learning curves of generic features maps for realistic datasets with a teacher-student model",
        2021,
        "NeurIPS, arXiv:2102.08127",
    ),
    "lu2020phase": Publication(
        "Lu, Li",
        "Phase transitions of spectral initialization for high-dimensional non-convex estimation",
        2020,
        "Information and Inference 9, 507, arXiv:1702.06435",
    ),
    "maillard2020phase": Publication(
        "Maillard, Loureiro, Krzakala, Zdeborová",
        "Phase retrieval in high dimensions: statistical and computational phase transitions",
        2020,
        "NeurIPS, arXiv:2006.05228",
    ),
    "maillard2022construction": Publication(
        "Maillard, Krzakala, Lu, Zdeborová",
        "Construction of optimal spectral methods in phase retrieval",
        2022,
        "MSML, arXiv:2012.04524",
    ),
    "maillard2022perturbative": Publication(
        "Maillard, Krzakala, Mézard, Zdeborová",
        "Perturbative construction of mean-field equations in extensive-rank matrix factorization and denoising",
        2022,
        "J. Stat. Mech. 083301, arXiv:2110.08775",
    ),
    "maillard2024bayes": Publication(
        "Maillard, Troiani, Martin, Krzakala, Zdeborová",
        "Bayes-optimal learning of an extensive-width neural network from quadratically many samples",
        2024,
        "NeurIPS, arXiv:2408.03733",
    ),
    "marchenko1967distribution": Publication(
        "Marchenko, Pastur",
        "Distribution of eigenvalues for some sets of random matrices",
        1967,
        "Mathematics of the USSR-Sbornik 1",
    ),
    "mei2022generalization": Publication(
        "Mei, Misiakiewicz, Montanari",
        "Generalization error of random feature and kernel methods: hypercontractivity and kernel matrix concentration",
        2022,
        "Appl. Comput. Harmon. Anal. 59, 3, arXiv:2101.10588",
    ),
    "mondelli2017fundamental": Publication(
        "Mondelli, Montanari",
        "Fundamental limits of weak recovery with applications to phase retrieval",
        2017,
        "arXiv:1708.05932",
    ),
    "mondelli2021approximate": Publication(
        "Mondelli, Venkataramanan",
        "Approximate message passing with spectral initialization for generalized linear models",
        2021,
        "AISTATS, arXiv:2010.03460",
    ),
    "moniri2024theory": Publication(
        "Moniri, Lee, Hassani, Dobriban",
        "A theory of non-linear feature learning with one gradient step in two-layer neural networks",
        2024,
        "ICML, arXiv:2310.07891",
    ),
    "moniri2026two": Publication(
        "Moniri, Hassani",
        "Feature learning with two steps of gradient descent in two-layer neural networks",
        2026,
        "arXiv:2605.17767",
    ),
    "montanari2014statistical": Publication(
        "Montanari, Richard",
        "A statistical model for tensor PCA",
        2014,
        "NeurIPS, arXiv:1411.1076",
    ),
    "montanari2021estimation": Publication(
        "Montanari, Venkataramanan",
        "Estimation of low-rank matrices via approximate message passing",
        2021,
        "Annals of Statistics 49, arXiv:1711.01682",
    ),
    "odonoghue2015adaptive": Publication(
        "O'Donoghue, Candès",
        "Adaptive restart for accelerated gradient schemes",
        2015,
        "Found. Comput. Math. 15, 715, arXiv:1204.3982",
    ),
    "owen1956tables": Publication(
        "Owen",
        "Tables for computing bivariate normal probabilities",
        1956,
        "Ann. Math. Statist. 27, 1075",
    ),
    "plackett1954reduction": Publication(
        "Plackett",
        "A reduction formula for normal multivariate integrals",
        1954,
        "Biometrika 41, 351",
    ),
    "rangan2011generalized": Publication(
        "Rangan",
        "Generalized approximate message passing for estimation with random linear mixing",
        2011,
        "ISIT, arXiv:1010.5141",
    ),
    "saad1995online": Publication(
        "Saad, Solla",
        "On-line learning in soft committee machines",
        1995,
        "Phys. Rev. E 52, 4225",
    ),
    "tabanelli2025computational": Publication(
        "Tabanelli, Mergny, Zdeborová, Krzakala",
        "Computational thresholds in multi-modal learning via the spiked matrix-tensor model",
        2025,
        "arXiv:2506.02664",
    ),
    "thrampoulidis2018precise": Publication(
        "Thrampoulidis, Abbasi, Hassibi",
        "Precise error analysis of regularized M-estimators in high dimensions",
        2018,
        "IEEE Trans. Inf. Theory 64, 5592, arXiv:1601.06233",
    ),
    "troiani2022optimal": Publication(
        "Troiani, Erba, Krzakala, Maillard, Zdeborová",
        "Optimal denoising of rotationally invariant rectangular matrices",
        2022,
        "arXiv:2203.07752",
    ),
    "troiani2024fundamental": Publication(
        "Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala",
        "Fundamental computational limits of weak learnability in high-dimensional multi-index models",
        2024,
        "AISTATS 2025, arXiv:2405.15480",
    ),
    "troiani2025fundamental": Publication(
        "Troiani, Cui, Dandi, Krzakala, Zdeborová",
        "Fundamental limits of learning in sequence multi-index models and deep attention networks: "
        "high-dimensional asymptotics and sharp thresholds",
        2025,
        "ICML, arXiv:2502.00901",
    ),
    "vilucchio2023asymptotic": Publication(
        "Vilucchio, Troiani, Erba, Krzakala",
        "Asymptotic characterisation of robust empirical risk minimisation performance in the presence of outliers",
        2023,
        "arXiv:2305.18974",
    ),
    "wei2022more": Publication(
        "Wei, Hu, Steinhardt",
        "More than a toy: random matrix models predict how real-world neural representations generalize",
        2022,
        "ICML, arXiv:2203.06176",
    ),
    "wortsman2026scaling": Publication(
        "Wortsman-Zurich, Tabanelli, Dandi, Krzakala, Loureiro",
        "Scaling Laws from Sequential Feature Recovery: a Solvable Hierarchical Model",
        2026,
        "arXiv:2605.14567",
    ),
    "wu2010renyi": Publication(
        "Wu, Verdú",
        "Rényi information dimension: fundamental limits of almost lossless analog compression",
        2010,
        "IEEE Trans. Inf. Theory 56, 3721",
    ),
    "xu2025fundamental": Publication(
        "Xu, Maillard, Zdeborová, Krzakala",
        "Fundamental limits of matrix sensing: exact asymptotics, universality, and applications",
        2025,
        "arXiv:2503.14121",
    ),
    "xu2025learning": Publication(
        "Xu, Krzakala, Zdeborová",
        "Learning with restricted Boltzmann machines: asymptotics of AMP and GD in high dimensions",
        2025,
        "NeurIPS, arXiv:2505.18046",
    ),
    "zdeborova2016statistical": Publication(
        "Zdeborová, Krzakala",
        "Statistical physics of inference: thresholds and algorithms",
        2016,
        "Adv. Phys. 65, 453, arXiv:1511.02476",
    ),
}
