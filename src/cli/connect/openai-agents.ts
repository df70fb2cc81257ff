// OpenAI Agents SDK: a server for its agents, which it keeps open while they run.

import { pyProgram, pyString } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyEntry, pythonSteps } from './python-parts.ts';

/** OpenAI Agents SDK. */
export const openaiAgents: ConnectKind = {
  name: 'openai-agents',
  title: 'OpenAI Agents SDK',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) => {
    const server = connection.transport === 'http' ? 'MCPServerStreamableHttp' : 'MCPServerStdio';
    return pyProgram(
      [`from agents.mcp import ${server}`],
      [
        `params = ${pyEntry(connection)}`,
        `async with ${server}(name=${pyString(connection.template)}, params=params) as server:`,
        '    tools = await server.list_tools()',
        '    print("\\n".join(tool.name for tool in tools))',
        '    # Agent(name="...", mcp_servers=[server]) uses them',
      ],
    );
  },
  steps: (connection) => pythonSteps(connection, 'openai-agents'),
  troubleshooting: [
    'A time-out while it connects: raise client_session_timeout_seconds of the server.',
    ...PYTHON_TROUBLE,
  ],
  documentation: ['https://openai.github.io/openai-agents-python/mcp/'],
};
