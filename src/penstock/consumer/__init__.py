"""What one consumer owns, obeys, refuses and reports. Pure but for `process`."""
