"""The embedded cluster: nodes that exist only here, jobs that are real processes.

``core.py`` decides; it is pure, with ``plan.py``, ``entry.py`` and ``jobs.py``. ``view.py`` shows it as a snapshot.
``server.py`` gives it a clock, processes (``running.py``, ``processes.py``) and a socket (``protocol.py``, ``client.py``);
``virtual.py`` gives it a virtual clock. Primary jobs come from a log (``swf.py``, ``trace.py``) or ``generator.py``.
"""
