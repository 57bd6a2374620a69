"""What can be learned: one folder a task."""
