"""The same decide() on recorded clusters: what a harvest of their idle nodes would have trained, against dedicated nodes.

``logs`` and ``primaries`` make a pool of idle nodes over time (``traces``) of what was recorded; ``sets`` reads who trains
(``workload``); ``simulate`` lets decide() share the pool (``world``) among ``trainer``s; ``reference`` is what is possible at no cost;
``measure`` puts them together and ``report`` says it. Semantics and metrics are those of research/papers.md 1.4 and 5.
"""
