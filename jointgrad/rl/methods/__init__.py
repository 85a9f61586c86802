"""Ways of learning a task, one file each."""
