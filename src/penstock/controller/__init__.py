"""The decision machine: states of the notes, one file each. Pure but for `process`."""
