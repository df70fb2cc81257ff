// Libraries for JavaScript: programs that list the tools of a template.

import { type ConnectKind, SET_VARIABLE } from './connect-kind.ts';
import type { ConnectTarget, ProgramTarget } from './connect-target.ts';

export const nodejs: ConnectKind = {
  name: 'nodejs',
  title: 'Node.js (official SDK)',
  transports: ['stdio', 'http'],
  language: 'js',
  snippet: (target) => {
    const isHttp = target.transport === 'http';
    const headers = `{ 'X-API-Key': ${jsKey(target)} }`;
    const options = target.key === undefined ? '' : `, {\n  requestInit: { headers: ${headers} },\n}`;
    const transport = isHttp
      ? `new StreamableHTTPClientTransport(new URL(${jsString(target.endpoint)})${options})`
      : `new StdioClientTransport(${jsProgram(target)})`;
    return [
      `import { Client${isHttp ? ', StreamableHTTPClientTransport' : ''} } from '@modelcontextprotocol/client';`,
      ...(isHttp ? [] : [`import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';`]),
      '',
      `const transport = ${transport};`,
      `const client = new Client({ name: 'my-client', version: '1.0.0' });`,
      'await client.connect(transport);',
      'const { tools } = await client.listTools();',
      `console.log(tools.map(({ name }) => name).join('\\n'));`,
      'await client.close();',
    ].join('\n');
  },
  steps: stepsWith('@modelcontextprotocol/client'),
  troubleshooting: [
    '"Cannot use import statement": the file must end in .mjs, or its package.json must say "type": "module".',
    '"401" or "authorization": the variable with the key is not set, or the key is not valid.',
  ],
  documentation: ['https://github.com/modelcontextprotocol/typescript-sdk'],
};

export const vercelAi: ConnectKind = {
  name: 'vercel-ai',
  title: 'Vercel AI SDK',
  transports: ['stdio', 'http'],
  language: 'js',
  snippet: (target) => {
    const isHttp = target.transport === 'http';
    const headers = target.key === undefined ? '' : `, headers: { 'X-API-Key': ${jsKey(target)} }`;
    const transport = isHttp
      ? `{ type: 'http', url: ${jsString(target.endpoint)}${headers} }`
      : `new Experimental_StdioMCPTransport(${jsProgram(target)})`;
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
  steps: stepsWith('ai @ai-sdk/mcp'),
  troubleshooting: [
    'The transport for programs is for local development only; a deployed application needs --http.',
    'Close the client when the answer is complete, or the process does not end.',
  ],
  documentation: ['https://ai-sdk.dev/docs/ai-sdk-core/mcp-tools'],
};

function stepsWith(packages: string): ConnectKind['steps'] {
  return [
    `Run "npm install ${packages}".`,
    'Save the snippet as client.mjs.',
    SET_VARIABLE,
    'Run "node client.mjs": it prints the names of the tools.',
  ];
}

function jsKey({ key }: ConnectTarget): string {
  return key?.value === undefined ? `process.env.${key?.variable}` : jsString(key.value);
}

function jsProgram(target: ProgramTarget): string {
  const { command, args, env, key } = target;
  const variables = [
    ...Object.entries(env).map(([name, value]) => `${name}: ${jsString(value)}`),
    ...(key === undefined ? [] : [`STAGEDOOR_API_KEY: ${jsKey(target)}`]),
  ];
  return [
    '{',
    `  command: ${jsString(command)},`,
    `  args: [${args.map(jsString).join(', ')}],`,
    ...(variables.length === 0 ? [] : [`  env: { ...process.env, ${variables.join(', ')} },`]),
    '}',
  ].join('\n');
}

function jsString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}
