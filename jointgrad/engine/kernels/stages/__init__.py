"""One stage of the step per file; forward and its reverse side by side. Stages meet only in the Workspace."""
