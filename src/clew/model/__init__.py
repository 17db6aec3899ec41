"""What a pipeline is: operators, ports, connections, events, and what of them is durable."""
