// Continue: a file of its own for each server, with a list of entries; secrets come from .env files.

import { configText } from './config-text.ts';
import {
  type ConfigFile,
  type ConnectKind,
  environmentOf,
  everywhere,
  headersOf,
  unlessEmpty,
} from './kind.ts';

const reference = (variable: string) => `\${{ secrets.${variable} }}`;

const file: ConfigFile = {
  format: 'yaml',
  locations: everywhere('.continue/mcpServers/stagedoor.yaml'),
  section: ['mcpServers'],
  isList: true,
  preamble: { name: 'stagedoor', version: '1.0.0', schema: 'v1' },
  entry: (connection) => {
    if (connection.transport === 'http') {
      const headers = headersOf(connection, reference);
      return {
        name: connection.template,
        type: 'streamable-http',
        url: connection.endpoint,
        ...(Object.keys(headers).length === 0 ? {} : { requestOptions: { headers } }),
      };
    }
    return {
      name: connection.template,
      type: 'stdio',
      command: connection.command,
      args: connection.args,
      ...unlessEmpty('env', environmentOf(connection, reference)),
    };
  },
};

/** Continue. */
export const continueDev: ConnectKind = {
  name: 'continue',
  title: 'Continue',
  transports: ['stdio', 'http'],
  language: 'yaml',
  file,
  snippet: (connection) => configText(file, connection),
  steps: ({ key }) => [
    'Save the snippet as .continue/mcpServers/stagedoor.yaml in the workspace.',
    ...(key === undefined || key.value !== undefined
      ? []
      : [`Put ${key.variable}=<the key> into .continue/.env of the workspace, or into ~/.continue/.env.`]),
    'Reload the window and choose the agent mode: MCP works only there.',
  ],
  troubleshooting: [
    'The server is not listed: name, version and schema at the top of the file are required.',
    '401: the secret is not found; its name in .env has to be the one in the snippet.',
  ],
  documentation: [
    'https://docs.continue.dev/customize/deep-dives/mcp',
    'https://docs.continue.dev/reference',
  ],
};
