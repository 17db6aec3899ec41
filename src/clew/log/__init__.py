"""The log: what makes a crash harmless. One log per replica, written by that replica alone."""
