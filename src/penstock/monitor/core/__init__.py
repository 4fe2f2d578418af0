"""What the monitor computes. Pure: no clock, no thread, no file, no network."""
