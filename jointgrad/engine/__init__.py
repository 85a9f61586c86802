"""The step, its reverse, and what is made of many of them."""
