"""Notifications: log, HTTP, chat, pager, e-mail."""
