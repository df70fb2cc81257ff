// Tools that send single requests to the HTTP API.

import { shellWord } from '../domain/text.ts';
import { type ConnectKind, SET_VARIABLE } from './connect-kind.ts';
import { type ConnectTarget, KEY_PLACEHOLDER } from './connect-target.ts';

export const curl: ConnectKind = {
  name: 'curl',
  title: 'curl',
  transports: ['http'],
  usesApi: true,
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
      '# Calls a tool, with its name and its arguments:',
      `# curl -fsS ${shellWord(`${base}/tools/call`)}${header} \\`,
      `#   -H 'Content-Type: application/json' -d '{"name":"...","arguments":{}}'`,
    ].join('\n');
  },
  steps: [SET_VARIABLE, 'Paste the lines into a POSIX shell; on Windows into Git Bash or WSL.'],
  troubleshooting: [
    '"curl: (22) ... 401": the key is missing, not valid or revoked; leave out -f to see the reason.',
    '"404": the template does not exist, or the key may not use it.',
    '"503": no instance of the template is healthy; "stagedoor instance list" shows why.',
  ],
  documentation: ['https://curl.se/docs/manpage.html'],
};

export const postman: ConnectKind = {
  name: 'postman',
  title: 'Postman',
  transports: ['http'],
  usesApi: true,
  language: 'json',
  snippet: (target) => JSON.stringify(collection(target), null, 2),
  steps: [
    'Save the snippet as stagedoor.postman_collection.json ("--output" does so).',
    'Click Import in Postman and choose the file.',
    () => 'Open the collection, Variables, and set the current value of apiKey, which is not shared.',
    'Send "List tools".',
  ],
  troubleshooting: [
    '401: apiKey has no current value.',
    '"Could not send request" for localhost: the web version of Postman needs its desktop agent.',
  ],
  documentation: [
    'https://learning.postman.com/docs/getting-started/importing-and-exporting/importing-data/',
    'https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html',
  ],
};

function collection({ template, url, key }: ConnectTarget): object {
  const header = key === undefined ? [] : [{ key: 'X-API-Key', value: '{{apiKey}}' }];
  const json = { key: 'Content-Type', value: 'application/json' };
  const call = JSON.stringify({ name: 'NAME_OF_A_TOOL', arguments: {} }, null, 2);
  const base = '{{baseUrl}}/mcp/{{template}}';
  return {
    info: { name: `stagedoor: ${template}`, schema: SCHEMA },
    variable: [
      { key: 'baseUrl', value: url },
      { key: 'template', value: template },
      ...(key === undefined ? [] : [{ key: 'apiKey', value: key.value ?? KEY_PLACEHOLDER }]),
    ],
    item: [
      { name: 'List tools', request: { method: 'GET', header, url: `${base}/tools/list` } },
      {
        name: 'Call a tool',
        request: {
          method: 'POST',
          header: [...header, json],
          url: `${base}/tools/call`,
          body: { mode: 'raw', raw: call, options: { raw: { language: 'json' } } },
        },
      },
    ],
  };
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';
