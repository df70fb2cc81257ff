// FastMCP: the client of the framework for Python.

import { pyProgram, pyString } from './code-text.ts';
import type { ConnectKind } from './kind.ts';
import { PYTHON_TROUBLE, pyCommand, pyHeaders, pythonSteps } from './python-parts.ts';

/** FastMCP. */
export const fastmcp: ConnectKind = {
  name: 'fastmcp',
  title: 'FastMCP',
  transports: ['stdio', 'http'],
  language: 'python',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      const given = headers === undefined ? '' : `, headers=${headers}`;
      return program('StreamableHttpTransport', `${pyString(connection.endpoint)}${given}`);
    }
    return program('StdioTransport', pyCommand(connection));
  },
  steps: (connection) => pythonSteps(connection, 'fastmcp'),
  troubleshooting: [...PYTHON_TROUBLE],
  documentation: ['https://gofastmcp.com/clients/transports'],
};

function program(transport: string, given: string): string {
  return pyProgram(
    ['from fastmcp import Client', `from fastmcp.client.transports import ${transport}`],
    [
      `async with Client(${transport}(${given})) as client:`,
      '    tools = await client.list_tools()',
      '    print("\\n".join(tool.name for tool in tools))',
    ],
  );
}
