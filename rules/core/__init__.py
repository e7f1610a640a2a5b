"""Parts that every rule kind is made of: groups, reasons, desired state, timers. Imports nothing of the
other layers."""
