"""The controller: `core` decides, one file for each state of the notes; `process` acts."""
