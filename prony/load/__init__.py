"""Drives the engine. Must not know what the figures are worth: that is the judge's business."""
