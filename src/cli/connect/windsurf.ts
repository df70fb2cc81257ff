// Windsurf: Cascade reads one file of the person, and calls the URL serverUrl.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, serverEntry, setVariable } from './kind.ts';

const reference = (variable: string) => `\${env:${variable}}`;

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('~/.codeium/windsurf/mcp_config.json'),
  section: ['mcpServers'],
  entry: (connection) => serverEntry(connection, { reference, urlName: 'serverUrl' }),
};

/** Windsurf. */
export const windsurf: ConnectKind = {
  name: 'windsurf',
  title: 'Windsurf',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    ...setVariable(connection),
    'Put the snippet into ~/.codeium/windsurf/mcp_config.json.',
    'Open the MCP panel of Cascade and press Refresh.',
  ],
  troubleshooting: [
    'The server is not listed: the file is not valid JSON.',
    '401: Windsurf was started without the variable. Quit it and start it from a shell that has it.',
    'More than 100 tools in all: switch some off in the MCP panel.',
  ],
  documentation: ['https://docs.windsurf.com/windsurf/cascade/mcp'],
};
