"""Talks to the Kubernetes API server; what only decides is in `core`."""
