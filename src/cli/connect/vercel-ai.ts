// AI SDK of Vercel: tools for generateText and its agents.

import { jsList, jsString } from './code-text.ts';
import { jsEnvironment, jsKey } from './javascript-parts.ts';
import { type ConnectKind, setVariable } from './kind.ts';

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
