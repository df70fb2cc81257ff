// The official SDK for JavaScript: a program that lists the tools.

import { jsList, jsString } from './code-text.ts';
import { jsEnvironment, jsKey } from './javascript-parts.ts';
import { type Connection, type ConnectKind, setVariable } from './kind.ts';

function transportOf(connection: Connection): { imports: string; made: string } {
  if (connection.transport === 'http') {
    const options =
      connection.key === undefined
        ? ''
        : `, {\n  requestInit: { headers: { 'X-API-Key': ${jsKey(connection)} } },\n}`;
    return {
      imports: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';`,
      made: `new StreamableHTTPClientTransport(new URL(${jsString(connection.endpoint)})${options})`,
    };
  }
  const { command, args } = connection;
  return {
    imports: [
      `import { Client } from '@modelcontextprotocol/client';`,
      `import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';`,
    ].join('\n'),
    made: `new StdioClientTransport({\n  command: ${jsString(command)},\n  args: ${jsList(args)},${jsEnvironment(connection)}\n})`,
  };
}

/** The official SDK for TypeScript and JavaScript. */
export const nodejs: ConnectKind = {
  name: 'nodejs',
  title: 'Node.js (official SDK)',
  transports: ['stdio', 'http'],
  language: 'js',
  snippet: (connection) => {
    const { imports, made } = transportOf(connection);
    return [
      imports,
      '',
      `const transport = ${made};`,
      `const client = new Client({ name: 'my-client', version: '1.0.0' });`,
      'await client.connect(transport);',
      'const { tools } = await client.listTools();',
      `console.log(tools.map(({ name }) => name).join('\\n'));`,
      'await client.close();',
    ].join('\n');
  },
  steps: (connection) => [
    'Run "npm install @modelcontextprotocol/client".',
    'Save the snippet as client.mjs.',
    ...setVariable(connection),
    'Run "node client.mjs": it prints the names of the tools.',
  ],
  troubleshooting: [
    '"Cannot use import statement": the file must end in .mjs, or its package.json must say "type": "module".',
    '"401" or "authorization": the variable with the key is not set, or the key is not valid.',
  ],
  documentation: ['https://github.com/modelcontextprotocol/typescript-sdk'],
};
