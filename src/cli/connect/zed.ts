// Zed: context_servers in its settings, which may hold comments; no variables.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, replacePlaceholder, serverEntry } from './kind.ts';

const file: ConfigFile = {
  format: 'json',
  locations: {
    macos: '~/.config/zed/settings.json',
    windows: '%APPDATA%\\Zed\\settings.json',
    linux: '~/.config/zed/settings.json',
  },
  section: ['context_servers'],
  entry: (connection) => serverEntry(connection, {}),
};

/** Zed. */
export const zed: ConnectKind = {
  name: 'zed',
  title: 'Zed',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    'Run "zed: open settings file" from the command palette.',
    'Put the entry of the snippet into context_servers.',
    ...replacePlaceholder(connection),
    'Open the settings of the Agent Panel: the dot beside the server turns green.',
  ],
  troubleshooting: [
    'A red dot: its tooltip has the reason; "zed: open log" has more.',
    'A remote server without headers makes Zed look for OAuth, which the gateway does not have.',
  ],
  documentation: ['https://zed.dev/docs/ai/mcp'],
  needsKeyInFile: true,
};
