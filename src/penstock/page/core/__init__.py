"""What the page shows, computed from the controller's snapshots. Pure: time is an input."""
