// curl: lines for a shell.

import { type ConnectKind, setVariable } from './kind.ts';

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'curl', version: '1.0.0' },
  },
};

/** Lines for a shell: the HTTP API, and the first request of an MCP client. */
export const curl: ConnectKind = {
  name: 'curl',
  title: 'curl',
  transports: ['http'],
  language: 'sh',
  snippet: ({ template, url, key }) => {
    const base = `${url}/mcp/${template}`;
    const value =
      key?.value === undefined ? `"X-API-Key: $${key?.variable}"` : shellWord(`X-API-Key: ${key.value}`);
    const header = key === undefined ? '' : ` -H ${value}`;
    return [
      '# The tools of the template',
      `curl -fsS ${shellWord(`${base}/tools/list`)}${header}`,
      '',
      '# What an MCP client sends first',
      `curl -fsS ${shellWord(base)}${header} -H 'Content-Type: application/json' \\`,
      `  -H 'Accept: application/json, text/event-stream' \\`,
      `  -d ${shellWord(JSON.stringify(initialize))}`,
      '',
      '# Calls a tool, with its name and its arguments:',
      `# curl -fsS ${shellWord(`${base}/tools/call`)}${header} \\`,
      `#   -H 'Content-Type: application/json' -d '{"name":"...","arguments":{}}'`,
    ].join('\n');
  },
  steps: (connection) => [
    ...setVariable(connection),
    'Paste the lines into a POSIX shell; on Windows into Git Bash or WSL.',
  ],
  troubleshooting: [
    '"curl: (22) ... 401": the key is missing, not valid or revoked; leave out -f to see the reason.',
    '"404": there is no such template, or the key may not use it.',
    '"503": no instance of the template is healthy; "stagedoor gateway list" shows why.',
  ],
  documentation: ['https://curl.se/docs/manpage.html'],
};

/** One word for a POSIX shell. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
