"""How a model is chosen."""
