"""The same decide() on recorded clusters: what a harvest of their idle nodes would have trained.

``traces`` is a pool of idle nodes over time, read from a log by ``summit``, ``sinfo`` or ``primaries``; ``workload`` is the endless
queue of trainers; ``simulate`` lets decide() share the pool among them; ``reference`` is what dedicated nodes would have done;
``report`` compares the two. Semantics and metrics are those of research/papers.md 1.4 and 5.
"""
