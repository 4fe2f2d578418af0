"""Compares the monitor's speeds with the producer's on a real broker: accuracy and delay."""
