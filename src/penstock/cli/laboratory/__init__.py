"""Commands that no running group needs: demo, broker, load, simulate, study."""
