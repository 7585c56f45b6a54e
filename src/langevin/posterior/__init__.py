"""Samples and any torch model → averages with their uncertainty; knows no task."""
