"""Commensal's daemon: reads the queue, predicts holes, fills them with pilots, and keeps every ring together."""
