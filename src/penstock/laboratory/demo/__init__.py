"""The main job on one machine, with things dying on the way, and the proof that all is there."""
