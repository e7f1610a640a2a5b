"""Notification: notifies when a target changes."""
