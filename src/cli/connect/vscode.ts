// Visual Studio Code: the entry, and where it belongs.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, serverEntry, setVariable } from './kind.ts';

const reference = (variable: string) => `\${env:${variable}}`;

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('.vscode/mcp.json'),
  section: ['servers'],
  entry: (connection) =>
    serverEntry(connection, { reference, stdio: { type: 'stdio' }, http: { type: 'http' } }),
};

/** Visual Studio Code, in the file of a workspace. */
export const vscode: ConnectKind = {
  name: 'vscode',
  title: 'Visual Studio Code',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    ...setVariable(connection),
    'Put the snippet into .vscode/mcp.json of the workspace; for all workspaces run "MCP: Open User Configuration".',
    'Run "MCP: List Servers" from the command palette, choose the server and start it.',
    'Open the chat in agent mode: its tools are under Configure Tools.',
  ],
  troubleshooting: [
    '"MCP: List Servers", the server, "Show Output" is its log.',
    '401: the variable was not set when VS Code was started. Quit all of its windows and start it from a shell that has it.',
    'Tools of before: run "MCP: Reset Cached Tools".',
  ],
  documentation: ['https://code.visualstudio.com/docs/copilot/reference/mcp-configuration'],
};
