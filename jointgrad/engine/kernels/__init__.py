"""What is compiled: the tables of a frame, the stages, the step and its reverse, the loop over time."""
