"""The program of section 5.2 of the paper: constants α, β, γ, δ as symbols."""

DECLARATIONS = """
.decl A(x: symbol, k: symbol, y: symbol)
.decl B(x: symbol, y: symbol, z: symbol)
.decl C(x: symbol, y: symbol)
.decl D(x: symbol, y: symbol, z: symbol)
.decl E(x: symbol, y: symbol, z: symbol)
.decl F(x: symbol, y: symbol)
"""
RULES = """
rule r1: A(x, "alpha", y), B(y, "beta", z), E(z, v, "gamma"), !F(x, z) -> C(x, z).
rule r2: C(x, y), D(y, z, u) -> D(z, u, x).
rule r3: B(x, y, "beta"), !D("delta", y, x), E(z, u, x) -> D("delta", z, x), !C(y, x).
rule r4: A(x, y, z), D("delta", x, y), C(z, t), F(z, w) -> !A(y, t, x), F(z, y).
"""
PRIORITIES = "\n.priority r1, r2, r3 > r4\n"
PROGRAM = DECLARATIONS + RULES + PRIORITIES
