"""The spine: request, pipeline, instruments, worker."""
