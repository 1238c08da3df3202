"""Measurements of the framework beside a bare loop, and beside its peers where they are installed.

``python -m benchmarks`` prints the table; ``docs/`` says how to read it.
"""
