// Gemini CLI: mcpServers in its settings; the URL of Streamable HTTP is httpUrl.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, serverEntry, setVariable } from './kind.ts';

const reference = (variable: string) => `\${${variable}}`;

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('~/.gemini/settings.json'),
  section: ['mcpServers'],
  entry: (connection) => serverEntry(connection, { reference, urlName: 'httpUrl' }),
};

/** Gemini CLI. */
export const geminiCli: ConnectKind = {
  name: 'gemini-cli',
  title: 'Gemini CLI',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    ...setVariable(connection),
    'Put the entry of the snippet into mcpServers of ~/.gemini/settings.json, or of .gemini/settings.json in a project.',
    'Start gemini and type /mcp: the server is listed as ready, with its tools.',
  ],
  troubleshooting: [
    'DISCONNECTED: "gemini --debug" shows the reason.',
    'Variables whose names look like secrets are kept from programs unless "env" names them, as the snippet does.',
  ],
  documentation: [
    'https://geminicli.com/docs/tools/mcp-server/',
    'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md',
  ],
};
