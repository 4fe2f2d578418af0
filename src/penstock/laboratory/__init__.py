"""What no running group needs: demo, test broker, load generator, simulations and studies."""
