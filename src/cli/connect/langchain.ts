// LangChain: tools for its agents, through the adapter that it has of its own.

import { pyDict, pyProgram } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyEntry, pythonSteps } from './python-parts.ts';

/** LangChain. */
export const langchain: ConnectKind = {
  name: 'langchain',
  title: 'LangChain',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) =>
    pyProgram(
      ['from langchain.mcp import MCPAdapter'],
      [
        `config = ${pyDict({ mcpServers: pyDict({ [connection.template]: pyEntry(connection) }) })}`,
        'async with MCPAdapter(config) as adapter:',
        '    tools = await adapter.list_tools()',
        '    print("\\n".join(tool.name for tool in tools))',
        '    # create_agent("provider:model", tools) uses them',
      ],
    ),
  steps: (connection) => pythonSteps(connection, '"langchain[mcp]>=1.4"'),
  troubleshooting: [
    '"No module named langchain.mcp": LangChain is older than 1.4, or installed without the extra "mcp".',
    ...PYTHON_TROUBLE,
  ],
  documentation: [
    'https://docs.langchain.com/oss/python/langchain/mcp',
    'https://docs.langchain.com/oss/python/migrate/langchain-mcp-adapters',
  ],
};
