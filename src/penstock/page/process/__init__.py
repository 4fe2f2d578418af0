"""What acts: reads the group's state, and serves the page and the API."""
