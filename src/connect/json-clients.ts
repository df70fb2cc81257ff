// Clients with a file in JSON that maps names of servers to entries: the form of the entry, and the path of the file.

import { envReference, fileKind, jsonFile, shellReference } from './file-kind.ts';
import { everywhere, replacePlaceholder, setVariable } from './kind.ts';

/** The Claude desktop app: programs only, and no variables in its file. */
export const claude = fileKind({
  name: 'claude',
  title: 'Claude (desktop app)',
  transports: ['stdio'],
  file: jsonFile(
    {
      macos: '~/Library/Application Support/Claude/claude_desktop_config.json',
      windows: '%APPDATA%\\Claude\\claude_desktop_config.json',
      linux: '~/.config/Claude/claude_desktop_config.json',
    },
    {},
  ),
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
});

/** Claude Code: the entry, and where it belongs. */
export const claudeCode = fileKind({
  name: 'claude-code',
  title: 'Claude Code',
  file: jsonFile(everywhere('.mcp.json'), {
    reference: shellReference,
    stdio: { type: 'stdio' },
    http: { type: 'http' },
  }),
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
});

/** Visual Studio Code: the entry, and where it belongs. */
export const vscode = fileKind({
  name: 'vscode',
  title: 'Visual Studio Code',
  file: jsonFile(
    everywhere('.vscode/mcp.json'),
    { reference: envReference, stdio: { type: 'stdio' }, http: { type: 'http' } },
    ['servers'],
  ),
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
});

/** Cursor: the entry of the person, for all projects. */
export const cursor = fileKind({
  name: 'cursor',
  title: 'Cursor',
  file: jsonFile(everywhere('~/.cursor/mcp.json'), { reference: envReference }),
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
});

/** Windsurf: Cascade reads one file of the person, and calls the URL serverUrl. */
export const windsurf = fileKind({
  name: 'windsurf',
  title: 'Windsurf',
  file: jsonFile(everywhere('~/.codeium/windsurf/mcp_config.json'), {
    reference: envReference,
    urlName: 'serverUrl',
  }),
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
});

/** Cline: no variables in its file, and a word of its own for Streamable HTTP. */
export const cline = fileKind({
  name: 'cline',
  title: 'Cline',
  file: jsonFile(everywhere('~/.cline/data/settings/cline_mcp_settings.json'), {
    http: { type: 'streamableHttp' },
    last: { disabled: false },
  }),
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
});

/** Zed: context_servers in its settings, which may hold comments; no variables. */
export const zed = fileKind({
  name: 'zed',
  title: 'Zed',
  file: jsonFile(
    {
      macos: '~/.config/zed/settings.json',
      windows: '%APPDATA%\\Zed\\settings.json',
      linux: '~/.config/zed/settings.json',
    },
    {},
    ['context_servers'],
  ),
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
});

/** JetBrains IDEs: AI Assistant takes the JSON in its settings, Junie from a file. */
export const jetbrains = fileKind({
  name: 'jetbrains',
  title: 'JetBrains AI Assistant and Junie',
  file: jsonFile(everywhere('~/.junie/mcp/mcp.json'), {}),
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
});

/** Gemini CLI: mcpServers in its settings; the URL of Streamable HTTP is httpUrl. */
export const geminiCli = fileKind({
  name: 'gemini-cli',
  title: 'Gemini CLI',
  file: jsonFile(everywhere('~/.gemini/settings.json'), { reference: shellReference, urlName: 'httpUrl' }),
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
});
