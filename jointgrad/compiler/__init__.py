"""How Python physics becomes machine code. Knows nothing of robots."""
