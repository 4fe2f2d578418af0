"""Everything that no running group needs: demo, test broker, load, simulations and studies."""
