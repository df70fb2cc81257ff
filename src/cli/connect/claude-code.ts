// Claude Code: the entry, and where it belongs.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, serverEntry, setVariable } from './kind.ts';

const reference = (variable: string) => `\${${variable}}`;

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('.mcp.json'),
  section: ['mcpServers'],
  entry: (connection) =>
    serverEntry(connection, { reference, stdio: { type: 'stdio' }, http: { type: 'http' } }),
};

/** Claude Code, in the file of a project. */
export const claudeCode: ConnectKind = {
  name: 'claude-code',
  title: 'Claude Code',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    ...setVariable(connection),
    'Put the snippet into .mcp.json in the root of the project, or its entry into the mcpServers that are there.',
    'Start claude in that folder and approve the server.',
    'Type /mcp: the server is listed as connected.',
  ],
  troubleshooting: [
    'A warning of a missing variable: the variable is not set in the shell that starts claude.',
    '"claude mcp list" shows the state of each server; "claude mcp reset-project-choices" asks for the approval again.',
    'A server that starts slowly: raise MCP_TIMEOUT (in milliseconds).',
  ],
  documentation: ['https://code.claude.com/docs/en/mcp'],
};
