"""The only room that imports a Kafka client: connections, administration, errors in our words."""
