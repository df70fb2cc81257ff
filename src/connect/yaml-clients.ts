// Clients with a file in YAML.

import { fileKind, serverEntry, shellReference } from './file-kind.ts';
import { everywhere, headersOf, setVariable, unlessEmpty } from './kind.ts';

const secretReference = (variable: string) => `\${{ secrets.${variable} }}`;

/** Continue: a file of its own for each server, with a list of entries; secrets come from .env files. */
export const continueDev = fileKind({
  name: 'continue',
  title: 'Continue',
  file: {
    format: 'yaml',
    locations: everywhere('.continue/mcpServers/stagedoor.yaml'),
    section: ['mcpServers'],
    isList: true,
    preamble: { name: 'stagedoor', version: '1.0.0', schema: 'v1' },
    entry: (connection) => {
      const { template: name } = connection;
      if (connection.transport === 'stdio') {
        return serverEntry(connection, { reference: secretReference, stdio: { name, type: 'stdio' } });
      }
      const headers = unlessEmpty('headers', headersOf(connection, secretReference));
      return {
        ...{ name, type: 'streamable-http', url: connection.endpoint },
        ...unlessEmpty('requestOptions', headers),
      };
    },
  },
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
});

/** goose: extensions in its YAML file. Keys are named in env_keys and kept in the keyring, or come from the environment. */
export const goose = fileKind({
  name: 'goose',
  title: 'goose',
  file: {
    format: 'yaml',
    locations: {
      macos: '~/.config/goose/config.yaml',
      windows: '%APPDATA%\\Block\\goose\\config\\config.yaml',
      linux: '~/.config/goose/config.yaml',
    },
    section: ['extensions'],
    entry: (connection) => {
      const { key, template } = connection;
      const isNamed = key !== undefined && key.value === undefined;
      const common = { enabled: true, name: template, description: `${template} through stagedoor` };
      const secrets = { env_keys: isNamed ? [key.variable] : [], timeout: 300 };
      if (connection.transport === 'http') {
        const headers = headersOf(connection, shellReference);
        return {
          ...common,
          type: 'streamable_http',
          uri: connection.endpoint,
          headers,
          envs: {},
          ...secrets,
        };
      }
      const { command: cmd, args, env } = connection;
      const envs = key?.value === undefined ? env : { ...env, STAGEDOOR_API_KEY: key.value };
      return { ...common, type: 'stdio', cmd, args, envs, ...secrets };
    },
  },
  steps: (connection) => [
    ...setVariable(connection),
    'Put the entry of the snippet into extensions of the file.',
    'Start a new session: "goose session" lists the extension, or says why it could not be started.',
  ],
  troubleshooting: [
    '"goose info -v" shows the file that is read and what is in it.',
    'The key is not found: goose looks for the names of env_keys in the keyring first; "goose configure" stores it there.',
    'SSE is not supported any more: the type has to be streamable_http.',
  ],
  documentation: ['https://goose-docs.ai/docs/guides/config-files'],
});
