// LlamaIndex: tools for its agents.

import { pyList, pyProgram, pyString } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyEnvironment, pyHeaders, pythonSteps } from './python-parts.ts';

/** LlamaIndex. */
export const llamaindex: ConnectKind = {
  name: 'llamaindex',
  title: 'LlamaIndex',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      return program(
        `${pyString(connection.endpoint)}${headers === undefined ? '' : `, headers=${headers}`}`,
      );
    }
    const env = pyEnvironment(connection);
    const { command, args } = connection;
    return program(`${pyString(command)}, args=${pyList(args)}${env === undefined ? '' : `, env=${env}`}`);
  },
  steps: (connection) => pythonSteps(connection, 'llama-index-tools-mcp'),
  troubleshooting: [...PYTHON_TROUBLE],
  documentation: ['https://developers.llamaindex.ai/python/framework/module_guides/mcp/llamaindex_mcp'],
};

function program(given: string): string {
  return pyProgram(
    ['from llama_index.tools.mcp import BasicMCPClient, McpToolSpec'],
    [
      `client = BasicMCPClient(${given})`,
      'tools = await McpToolSpec(client=client).to_tool_list_async()',
      'print("\\n".join(tool.metadata.name for tool in tools))',
      '# FunctionAgent(tools=tools, llm=...) uses them',
    ],
  );
}
