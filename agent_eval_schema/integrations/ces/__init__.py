"""The Customer Engagement Suite API: a client over MCP or REST."""
