"""Ready operators, each built on the four moves of `clew.Operator`."""
