// Cursor: the entry of the person, for all projects.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, serverEntry, setVariable } from './kind.ts';

const reference = (variable: string) => `\${env:${variable}}`;

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('~/.cursor/mcp.json'),
  section: ['mcpServers'],
  entry: (connection) => serverEntry(connection, { reference }),
};

/** Cursor. */
export const cursor: ConnectKind = {
  name: 'cursor',
  title: 'Cursor',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    ...setVariable(connection),
    'Put the snippet into ~/.cursor/mcp.json, or into .cursor/mcp.json of one project.',
    'Open Settings, Tools & MCP and switch the server on.',
  ],
  troubleshooting: [
    'A red dot: "Show Output" in Settings, or Output, MCP Logs, has the reason.',
    '401: Cursor was started without the variable. Quit it and start it from a shell that has it.',
  ],
  documentation: ['https://cursor.com/docs/context/mcp'],
};
