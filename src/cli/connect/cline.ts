// Cline: no variables in its file, and a word of its own for Streamable HTTP.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, replacePlaceholder, serverEntry } from './kind.ts';

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('~/.cline/data/settings/cline_mcp_settings.json'),
  section: ['mcpServers'],
  entry: (connection) => ({
    ...serverEntry(connection, { http: { type: 'streamableHttp' } }),
    disabled: false,
  }),
};

/** Cline. */
export const cline: ConnectKind = {
  name: 'cline',
  title: 'Cline',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    'Click the MCP Servers icon, Configure, Configure MCP Servers: the file opens.',
    'Put the snippet into it, or its entry into the mcpServers that are there.',
    ...replacePlaceholder(connection),
    'Save it: the server appears in the list with a green dot.',
  ],
  troubleshooting: [
    'The VS Code extension may keep its file in the global storage of VS Code; step 1 opens the right one.',
    'A red dot: click "Restart Server"; the message below it says why.',
    'A URL without "type" is taken for HTTP+SSE.',
  ],
  documentation: ['https://docs.cline.bot/mcp/mcp-overview'],
  needsKeyInFile: true,
};
