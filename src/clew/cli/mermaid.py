"""The graph of a pipeline as a Mermaid flowchart."""

from __future__ import annotations

from clew.model.graph import Graph, Node


def mermaid(graph: Graph) -> str:
    """The flowchart: sources are rounded, outside systems are cylinders, host groups are frames."""
    numbers = {name: f"op{number}" for number, name in enumerate(graph.nodes)}
    grouped = {name for group in graph.groups for name in group}
    lines = ["flowchart LR"]
    lines += [f"  {_shape(numbers[name], node)}" for name, node in graph.nodes.items() if name not in grouped]
    for number, group in enumerate(graph.groups):
        lines.append(f"  subgraph host{number} [one process]")
        lines += [f"    {_shape(numbers[name], graph.nodes[name])}" for name in group]
        lines.append("  end")
    for sender, output, receiver, port in edges_of(graph):
        label = "" if (output, port) == ("out", "in") else f'|"{output} to {port}"|'
        lines.append(f"  {numbers[sender]} -->{label} {numbers[receiver]}")
    for name, node in graph.nodes.items():
        for write, connection in node.writes.items():
            place = f"{numbers[name]}_{len(lines)}"
            lines.append(f'  {numbers[name]} -.->|"{connection.kind}"| {place}[("{name}.{write}")]')
    return "\n".join(lines)


def edges_of(graph: Graph) -> list[tuple[str, str, str, str]]:
    """The connections between operators, once for all of their replicas."""
    found = {
        (channel.sender.operator, channel.output, channel.receiver.operator, channel.input): None
        for channel in graph.channels
    }
    return list(found)


def _shape(number: str, node: Node) -> str:
    text = node.name if node.replicas == 1 else f"{node.name} × {node.replicas}"
    return f'{number}(["{text}"])' if node.is_source else f'{number}["{text}"]'
