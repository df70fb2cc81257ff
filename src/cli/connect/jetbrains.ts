// JetBrains IDEs: AI Assistant takes the JSON in its settings, Junie from a file.

import { configText } from './config-text.ts';
import { type ConfigFile, type ConnectKind, everywhere, replacePlaceholder, serverEntry } from './kind.ts';

const file: ConfigFile = {
  format: 'json',
  locations: everywhere('~/.junie/mcp/mcp.json'),
  section: ['mcpServers'],
  entry: (connection) => serverEntry(connection, {}),
};

/** JetBrains AI Assistant and Junie. */
export const jetbrains: ConnectKind = {
  name: 'jetbrains',
  title: 'JetBrains AI Assistant and Junie',
  transports: ['stdio', 'http'],
  language: 'json',
  file,
  snippet: (connection) => configText(file, connection),
  steps: (connection) => [
    'AI Assistant: open Settings, Tools, AI Assistant, Model Context Protocol (MCP), and click Add.',
    'Choose JSON (STDIO) or Streamable HTTP, and paste the snippet.',
    ...replacePlaceholder(connection),
    'Apply: the status of the server shows its tools.',
    'Junie, instead: put the snippet into ~/.junie/mcp/mcp.json.',
  ],
  troubleshooting: [
    'The status is an error: click it for the log of the server.',
    '"Cannot run program": use the absolute path of the command.',
  ],
  documentation: [
    'https://www.jetbrains.com/help/ai-assistant/mcp.html',
    'https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html',
  ],
  needsKeyInFile: true,
};
