// The official SDK for JavaScript: a program that lists the tools.

import { jsList, jsString } from './code-text.ts';
import { type Connection, type ConnectKind, setVariable } from './kind.ts';

/** Members of an object for JavaScript, the key among them. */
function members(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}: ${jsString(value)}`);
}

function keyIn({ key }: Connection): string {
  return key?.value === undefined ? `process.env.${key?.variable}` : jsString(key.value);
}

function transportOf(connection: Connection): { imports: string; made: string } {
  if (connection.transport === 'http') {
    const options =
      connection.key === undefined
        ? ''
        : `, {\n  requestInit: { headers: { 'X-API-Key': ${keyIn(connection)} } },\n}`;
    return {
      imports: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';`,
      made: `new StreamableHTTPClientTransport(new URL(${jsString(connection.endpoint)})${options})`,
    };
  }
  const { command, args, env, key } = connection;
  const variables = [
    ...members(env),
    ...(key === undefined ? [] : [`STAGEDOOR_API_KEY: ${keyIn(connection)}`]),
  ];
  const extra = variables.length === 0 ? '' : `\n  env: { ...process.env, ${variables.join(', ')} },`;
  return {
    imports: [
      `import { Client } from '@modelcontextprotocol/client';`,
      `import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';`,
    ].join('\n'),
    made: `new StdioClientTransport({\n  command: ${jsString(command)},\n  args: ${jsList(args)},${extra}\n})`,
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
