"""OpenPBS and PBS Professional, through their own commands.

Builders of command lines, parsers and state tables are pure; ``../runner.py`` alone starts processes, ``scheduler.py`` puts them
together. All of it speaks in records: the attributes that ``qstat -f`` prints of one job, node or queue, resources with a dot
(``Resource_List.walltime``), values as text.

Begin with ``answers.py``: ``qstat -F json`` is not always JSON.
"""
