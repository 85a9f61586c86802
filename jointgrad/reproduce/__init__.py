"""Published experiments, one file each."""
