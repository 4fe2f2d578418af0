"""What the Kubernetes back-end decides. Pure: it makes no call to the API server."""
