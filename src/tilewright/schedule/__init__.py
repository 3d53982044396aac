"""Decisions: plan, layouts, pipeline."""
