"""What people type: one file per command. Nothing imports this room."""
