// AutoGen: tools for its agents.

import { pyProgram, pyString } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyCommand, pyHeaders, pythonSteps } from './python-parts.ts';

/** AutoGen. */
export const autogen: ConnectKind = {
  name: 'autogen',
  title: 'AutoGen',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      const given = headers === undefined ? '' : `, headers=${headers}`;
      return program('StreamableHttpServerParams', `url=${pyString(connection.endpoint)}${given}`);
    }
    return program('StdioServerParams', pyCommand(connection));
  },
  steps: (connection) => pythonSteps(connection, '"autogen-ext[mcp]" autogen-agentchat'),
  troubleshooting: [...PYTHON_TROUBLE],
  documentation: ['https://microsoft.github.io/autogen/stable/reference/python/autogen_ext.tools.mcp.html'],
};

function program(params: string, given: string): string {
  return pyProgram(
    [`from autogen_ext.tools.mcp import ${params}, mcp_server_tools`],
    [
      `tools = await mcp_server_tools(${params}(${given}))`,
      'print("\\n".join(tool.name for tool in tools))',
      '# AssistantAgent("name", model_client=..., tools=tools) uses them',
    ],
  );
}
