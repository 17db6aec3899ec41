"""LOG.io as state machines that do no input or output: one input in, a list of effects out."""
