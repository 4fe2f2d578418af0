"""What the controller decides. Pure: no clock, no thread, no file, no network."""
