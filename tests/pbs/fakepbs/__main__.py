"""``python -m fakepbs``."""

from fakepbs.command import main

main()
