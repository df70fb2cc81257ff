// Tools that send single requests: the HTTP API, and the first requests of an MCP client.

import { type Connection, type ConnectKind, KEY_PLACEHOLDER, keyStep, setVariable } from './kind.ts';

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
      '# The first message of an MCP client',
      `curl -fsS ${shellWord(base)}${header} -H 'Content-Type: application/json' \\`,
      `  -H 'Accept: application/json, text/event-stream' \\`,
      `  -d ${shellWord(JSON.stringify(initialize('curl')))}`,
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
    '"404": the template does not exist, or the key may not use it.',
    '"503": no instance of the template is healthy; "stagedoor gateway list" shows why.',
  ],
  documentation: ['https://curl.se/docs/manpage.html'],
};

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export const postman: ConnectKind = {
  name: 'postman',
  title: 'Postman',
  transports: ['http'],
  language: 'json',
  snippet: (connection) => JSON.stringify(collection(connection), null, 2),
  steps: (connection) => [
    'Save the snippet as stagedoor.postman_collection.json ("--output" does so).',
    'Click Import in Postman and choose the file.',
    ...keyStep(
      connection,
      () => 'Open the collection, Variables, and set the current value of apiKey, which is not shared.',
    ),
    'Send "List tools".',
  ],
  troubleshooting: [
    '401: apiKey has no current value.',
    'Send "MCP: initialize" before "MCP: list tools": it keeps the id of the session in a variable.',
    '"Could not send request" for localhost: the web version of Postman needs its desktop agent.',
  ],
  documentation: [
    'https://learning.postman.com/docs/getting-started/importing-and-exporting/importing-data/',
    'https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html',
  ],
};

function collection({ template, url, key }: Connection): object {
  const header = key === undefined ? [] : [{ key: 'X-API-Key', value: '{{apiKey}}' }];
  const json = { key: 'Content-Type', value: 'application/json' };
  const both = { key: 'Accept', value: 'application/json, text/event-stream' };
  const session = [
    { key: 'Mcp-Session-Id', value: '{{sessionId}}' },
    { key: 'MCP-Protocol-Version', value: '2025-11-25' },
  ];
  const post = (url: string, more: readonly object[], body: object) => ({
    method: 'POST',
    header: [...header, ...more],
    url,
    body: { mode: 'raw', raw: JSON.stringify(body, null, 2), options: { raw: { language: 'json' } } },
  });
  const base = '{{baseUrl}}/mcp/{{template}}';
  const keepSession = [
    "const id = pm.response.headers.get('Mcp-Session-Id');",
    "if (id) pm.collectionVariables.set('sessionId', id);",
  ];
  return {
    info: { name: `stagedoor: ${template}`, schema: SCHEMA },
    variable: [
      { key: 'baseUrl', value: url },
      { key: 'template', value: template },
      ...(key === undefined ? [] : [{ key: 'apiKey', value: key.value ?? KEY_PLACEHOLDER }]),
      { key: 'sessionId', value: '' },
    ],
    item: [
      { name: 'List tools', request: { method: 'GET', header, url: `${base}/tools/list` } },
      {
        name: 'Call a tool',
        request: post(`${base}/tools/call`, [json], { name: 'NAME_OF_A_TOOL', arguments: {} }),
      },
      {
        name: 'MCP: initialize',
        event: [{ listen: 'test', script: { type: 'text/javascript', exec: keepSession } }],
        request: post(base, [json, both], initialize('postman')),
      },
      {
        name: 'MCP: list tools',
        request: post(base, [json, both, ...session], { jsonrpc: '2.0', id: 2, method: 'tools/list' }),
      },
    ],
  };
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

function initialize(name: string): object {
  const clientInfo = { name, version: '1.0.0' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  return { jsonrpc: '2.0', id: 1, method: 'initialize', params };
}
