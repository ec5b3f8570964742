"""The publications whose numbers we reproduce."""

from __future__ import annotations

from solvable.core.bibliography import BIBLIOGRAPHY

GYORGYI = BIBLIOGRAPHY["gyorgyi1990first"]
WU_VERDU = BIBLIOGRAPHY["wu2010renyi"]
MONDELLI_MONTANARI = BIBLIOGRAPHY["mondelli2017fundamental"]
BARBIER = BIBLIOGRAPHY["barbier2019optimal"]
AUBIN = BIBLIOGRAPHY["aubin2018committee"]
MAILLARD = BIBLIOGRAPHY["maillard2020phase"]
BEN_AROUS = BIBLIOGRAPHY["arous2021online"]
ABBE = BIBLIOGRAPHY["abbe2023sgd"]
DANDI = BIBLIOGRAPHY["dandi2024benefits"]
DAMIAN = BIBLIOGRAPHY["damian2024computational"]
TROIANI = BIBLIOGRAPHY["troiani2024fundamental"]
MAILLARD_TROIANI = BIBLIOGRAPHY["maillard2024bayes"]
ERBA = BIBLIOGRAPHY["erba2025nuclear"]
GIRARDIN = BIBLIOGRAPHY["girardin2026width"]
DONOHO_TANNER = BIBLIOGRAPHY["donoho2009counting"]
HASTIE = BIBLIOGRAPHY["hastie2022surprises"]
VILUCCHIO = BIBLIOGRAPHY["vilucchio2023asymptotic"]
SAAD_SOLLA = BIBLIOGRAPHY["saad1995online"]
GOLDT = BIBLIOGRAPHY["goldt2019dynamics"]
ARNABOLDI = BIBLIOGRAPHY["arnaboldi2024repetita"]
BONCORAGLIO = BIBLIOGRAPHY["boncoraglio2025bayes"]
DEFILIPPIS = BIBLIOGRAPHY["defilippis2024dimension"]
MONIRI = BIBLIOGRAPHY["moniri2026two"]
