"""The real driver of the kernels: hosts in Spark tasks, channels over TCP, a coordinator, supervision."""
