// The Claude desktop app: programs only, and no variables in its file.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, replacePlaceholder, serverEntry } from './kind.ts';

const file: ConfigFile = {
  format: 'json',
  locations: {
    macos: '~/Library/Application Support/Claude/claude_desktop_config.json',
    windows: '%APPDATA%\\Claude\\claude_desktop_config.json',
    linux: '~/.config/Claude/claude_desktop_config.json',
  },
  section: ['mcpServers'],
  entry: (connection) => serverEntry(connection, {}),
};

/** Claude (desktop app). */
export const claude: ConnectKind = {
  name: 'claude',
  title: 'Claude (desktop app)',
  transports: ['stdio'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    'Open Settings, Developer, Edit Config: the file opens.',
    'Put the snippet into it, or its entry into the mcpServers that are there.',
    ...replacePlaceholder(connection),
    'Quit the app (not only its window) and start it again.',
    'Open the list of connectors in a new chat: the server is there.',
  ],
  troubleshooting: [
    'The server is not listed: the file is not valid JSON, or the app was not quit. Settings, Developer shows the error.',
    'Its log is mcp-server-NAME.log, in ~/Library/Logs/Claude (macOS) or %APPDATA%\\Claude\\logs (Windows).',
    '"not logged in" in the log: the key is missing; see step 3.',
  ],
  documentation: ['https://modelcontextprotocol.io/docs/develop/connect-local-servers'],
  needsKeyInFile: true,
};
