"""Slurm, 22.05 to 26.05, through its own commands or, where they fit, its Python bindings.

Builders of command lines, parsers and state tables are pure; ``bindings.py`` and ``../runner.py`` are the only ones that start a
process, ``scheduler.py`` puts them together. All of it speaks in records: what ``scontrol -o show`` prints, key by key.
"""
