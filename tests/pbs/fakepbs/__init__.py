"""A faithful fake of OpenPBS, for tests alone: the server is in no package registry.

``site.py`` holds nodes, queues and settings, ``options.py`` reads what ``qsub`` is asked, ``record.py`` is a job's life, ``core.py`` the
embedded cluster's core with PBS's rules, ``cluster.py`` a whole PBS without clock and processes. ``job_attributes.py``,
``site_attributes.py`` and ``layout.py`` show it in the shapes and texts of tests/fixtures/pbs (OpenPBS 23.06), ``programs.py`` and
``queries.py`` answer each command (all pure). ``mom.py`` runs jobs as processes, ``server.py`` gives all this a clock and a socket,
``client.py`` and ``pbsdsh.py`` are what lies on PATH, ``command.py`` starts and stops.
"""
