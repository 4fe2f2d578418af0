"""The penstock program as a module: `python -m penstock`."""

from penstock.cli.main import main

main()
