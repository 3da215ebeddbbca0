"""A real cluster of one node, made of the programs of Kubernetes."""
