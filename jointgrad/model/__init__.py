"""What the robot is: descriptions that people edit, worlds that hold them, models that the engine runs."""
