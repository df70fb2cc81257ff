// The official SDK for Python, from its second major version on.

import { pyProgram, pyString } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyCommand, pyHeaders, pythonSteps } from './python-parts.ts';

/** Python (official SDK). */
export const python: ConnectKind = {
  name: 'python',
  title: 'Python (official SDK)',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const url = pyString(connection.endpoint);
      const headers = pyHeaders(connection);
      if (headers === undefined) {
        return pyProgram(['from mcp import Client'], [`async with Client(${url}) as client:`, ...LIST]);
      }
      return pyProgram(
        [
          'import httpx2',
          'from mcp import Client',
          'from mcp.client.streamable_http import streamable_http_client',
        ],
        [
          `headers = ${headers}`,
          'timeout = httpx2.Timeout(30, read=300)',
          'async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:',
          `    async with Client(streamable_http_client(${url}, http_client=http)) as client:`,
          ...LIST.map((line) => `    ${line}`),
        ],
      );
    }
    return pyProgram(
      ['from mcp import Client, StdioServerParameters'],
      [
        `server = StdioServerParameters(${pyCommand(connection)})`,
        'async with Client(server) as client:',
        ...LIST,
      ],
    );
  },
  steps: (connection) => pythonSteps(connection, '"mcp>=2"'),
  troubleshooting: ['"cannot import name Client": the installed mcp is older than 2.0.', ...PYTHON_TROUBLE],
  documentation: ['https://github.com/modelcontextprotocol/python-sdk/blob/main/docs/client/transports.md'],
};

const LIST = [
  '    result = await client.list_tools()',
  '    print("\\n".join(tool.name for tool in result.tools))',
];
