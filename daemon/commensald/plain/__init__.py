"""One training without a daemon, in a plain job or job array: what ``scripts/sbatch-train`` and ``qsub-train`` run in every node.

``place.py`` tells which task of which job this is, ``book.py`` keeps what must survive the job, ``coordinate.py`` is the coordinator in the
first task of the first job, and ``task.py`` is a task's life.
"""
