"""What we ship: a bill of materials from the locks, and the licences of everything in it."""
