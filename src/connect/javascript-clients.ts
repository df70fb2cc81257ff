// Libraries for JavaScript: programs that list the tools of a template.

import { type Connection, type ConnectKind, type ProgramConnection, setVariable } from './kind.ts';

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

/** Vercel AI SDK. */
export const vercelAi: ConnectKind = {
  name: 'vercel-ai',
  title: 'Vercel AI SDK',
  transports: ['stdio', 'http'],
  language: 'js',
  snippet: (connection) => {
    const isHttp = connection.transport === 'http';
    const headers = connection.key === undefined ? '' : `, headers: { 'X-API-Key': ${jsKey(connection)} }`;
    const transport = isHttp
      ? `{ type: 'http', url: ${jsString(connection.endpoint)}${headers} }`
      : `new Experimental_StdioMCPTransport({
  command: ${jsString(connection.command)},
  args: ${jsList(connection.args)},${jsEnvironment(connection)}
})`;
    return [
      `import { createMCPClient } from '@ai-sdk/mcp';`,
      ...(isHttp ? [] : [`import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';`]),
      '',
      `const transport = ${transport};`,
      'const client = await createMCPClient({ transport });',
      'const tools = await client.tools();',
      `console.log(Object.keys(tools).join('\\n'));`,
      '// generateText({ model, tools, prompt }) uses them',
      'await client.close();',
    ].join('\n');
  },
  steps: (connection) => [
    'Run "npm install ai @ai-sdk/mcp".',
    'Save the snippet as client.mjs.',
    ...setVariable(connection),
    'Run "node client.mjs": it prints the names of the tools.',
  ],
  troubleshooting: [
    'The transport for programs is for local development only; a deployed application needs --http.',
    'Close the client when the answer is complete, or the process does not end.',
  ],
  documentation: ['https://ai-sdk.dev/docs/ai-sdk-core/mcp-tools'],
};

/** The key as an expression. */
function jsKey({ key }: Connection): string {
  return key?.value === undefined ? `process.env.${key?.variable}` : jsString(key.value);
}

/** The member `env` of a program, on a line of its own; empty when it needs none. */
function jsEnvironment(connection: ProgramConnection): string {
  const given = Object.entries(connection.env).map(([name, value]) => `${name}: ${jsString(value)}`);
  const all = connection.key === undefined ? given : [...given, `STAGEDOOR_API_KEY: ${jsKey(connection)}`];
  return all.length === 0 ? '' : `\n  env: { ...process.env, ${all.join(', ')} },`;
}

/** A string of JavaScript. */
function jsString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** The string, list or map of strings in JavaScript, on one line. */
function jsList(texts: readonly string[]): string {
  return `[${texts.map(jsString).join(', ')}]`;
}
