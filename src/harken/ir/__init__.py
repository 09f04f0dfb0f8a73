"""ObjectLog, the one intermediate language: typed, stratified Horn clauses over relations.

Front ends translate into it, the calculus rewrites it, engines turn it into SQL. Everything here
is a frozen value; a program is never changed, only rewritten into another one.
"""
