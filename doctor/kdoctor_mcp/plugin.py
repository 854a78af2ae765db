"""The command that this extension adds to kdoctor."""

from kdoctor.cli.lazy import LazyCommand

MCP = LazyCommand(
    "kdoctor_mcp.server:mcp",
    "Serve the commands that only read to editors and agents (Model Context Protocol).",
    'Example: {"mcpServers": {"kdoctor": {"command": "kdoctor", "args": ["mcp"]}}}',
    place="hidden",
)
