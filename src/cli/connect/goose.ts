// goose: extensions in its YAML file. Keys are named in env_keys and kept in the keyring, or come from the environment.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, headersOf, setVariable } from './kind.ts';

const reference = (variable: string) => `\${${variable}}`;

const file: ConfigFile = {
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
      const headers = headersOf(connection, reference);
      return { ...common, type: 'streamable_http', uri: connection.endpoint, headers, envs: {}, ...secrets };
    }
    const { command: cmd, args, env } = connection;
    const envs = key?.value === undefined ? env : { ...env, STAGEDOOR_API_KEY: key.value };
    return { ...common, type: 'stdio', cmd, args, envs, ...secrets };
  },
};

/** goose. */
export const goose: ConnectKind = {
  name: 'goose',
  title: 'goose',
  transports: ['stdio', 'http'],
  language: 'yaml',
  file,
  snippet: (connection) => configText(file, connection),
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
};
