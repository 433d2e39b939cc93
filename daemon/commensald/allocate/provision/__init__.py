"""The cheapest mix of priced, unequal nodes that brings a training to a loss in time.

spotdnn.py is the paper on one page; ring.py puts a synchronous ring in the parameter server's place; fit.py learns the loss model;
search.py plans, risk.py says what may go wrong, takeover.py plans again when a node is lost; profile.py reads what a site measured.
"""
