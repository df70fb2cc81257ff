// Clients that are configured by a file, in the order in which they are shown: the form of the entry, and the
// path of the file. Their snippet is the section of the file with one entry, in the language of the file.

import { stringify as yaml } from 'yaml';
import {
  type ConfigFile,
  type ConnectKind,
  everywhere,
  type FileLocations,
  REPLACE_PLACEHOLDER,
  SET_VARIABLE,
} from './connect-kind.ts';
import {
  type ConnectTarget,
  environmentOf,
  headersOf,
  keyVariable,
  withWrittenKey,
} from './connect-target.ts';

const shellReference = (variable: string) => `\${${variable}}`;
const envReference = (variable: string) => `\${env:${variable}}`;
const secretReference = (variable: string) => `\${{ secrets.${variable} }}`;

/** The step of the setup of clients that open the browser by themselves. */
const BROWSER = 'The browser opens: sign in to the gateway, and allow the access.';

export const FILE_CLIENTS: readonly ConnectKind[] = [
  // The Claude desktop app: programs only, and no variables in its file.
  fileKind({
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
    steps: [
      'Open Settings, Developer, Edit Config: the file opens.',
      'Put the snippet into it, or its entry into the existing mcpServers.',
      REPLACE_PLACEHOLDER,
      'Quit the app (not only its window) and start it again.',
      'Open the list of connectors in a new chat: the server is there.',
    ],
    troubleshooting: [
      'The server is not listed: the file is not valid JSON, or the app was not quit. Settings, Developer shows the error.',
      'Its log is mcp-server-NAME.log, in ~/Library/Logs/Claude (macOS) or %APPDATA%\\Claude\\logs (Windows).',
      '"not logged in" in the log: the key is missing from the snippet.',
    ],
    documentation: ['https://modelcontextprotocol.io/docs/develop/connect-local-servers'],
  }),
  fileKind({
    name: 'claude-code',
    title: 'Claude Code',
    toolNames: { prefix: (server) => `mcp__${server}__`, most: 64 },
    file: jsonFile(everywhere('.mcp.json'), {
      reference: shellReference,
      stdio: { type: 'stdio' },
      http: { type: 'http' },
    }),
    signIn:
      'Choose the server in /mcp, then Authenticate: the browser opens. Sign in to the gateway, and allow the access.',
    steps: [
      SET_VARIABLE,
      'Put the snippet into .mcp.json in the root of the project, or its entry into the existing mcpServers.',
      'Start claude in that folder and approve the server.',
      'Type /mcp: the server is listed as connected.',
    ],
    troubleshooting: [
      'A warning of a missing variable: the variable is not set in the shell that starts claude.',
      '"claude mcp list" shows the state of each server; "claude mcp reset-project-choices" asks for the approval again.',
      'A server that starts slowly: raise MCP_TIMEOUT (in milliseconds).',
    ],
    documentation: ['https://code.claude.com/docs/en/mcp'],
  }),
  fileKind({
    name: 'vscode',
    title: 'Visual Studio Code',
    file: jsonFile(
      everywhere('.vscode/mcp.json'),
      { reference: envReference, stdio: { type: 'stdio' }, http: { type: 'http' } },
      ['servers'],
    ),
    signIn: BROWSER,
    steps: [
      SET_VARIABLE,
      'Put the snippet into .vscode/mcp.json of the workspace; for all workspaces run "MCP: Open User Configuration".',
      'Run "MCP: List Servers" from the command palette, choose the server and start it.',
      'Open the chat in agent mode: its tools are under Configure Tools.',
    ],
    troubleshooting: [
      '"MCP: List Servers", the server, "Show Output" is its log.',
      '401: the variable was not set when VS Code was started. Quit all of its windows and start it from a shell that has it.',
      'Outdated tools: run "MCP: Reset Cached Tools".',
    ],
    documentation: ['https://code.visualstudio.com/docs/copilot/reference/mcp-configuration'],
  }),
  // Cursor: the user's entry, for all projects.
  fileKind({
    name: 'cursor',
    title: 'Cursor',
    // Of name and server together; a longer tool is left out.
    toolNames: { prefix: (server) => server, most: 60 },
    file: jsonFile(everywhere('~/.cursor/mcp.json'), { reference: envReference }),
    signIn:
      'Click "Needs login" beside the server: the browser opens. Sign in to the gateway, and allow the access.',
    steps: [
      SET_VARIABLE,
      'Put the snippet into ~/.cursor/mcp.json, or into .cursor/mcp.json of one project.',
      'Open Settings, Tools & MCP and switch the server on.',
    ],
    troubleshooting: [
      'A red dot: "Show Output" in Settings, or Output, MCP Logs, has the reason.',
      '401: Cursor was started without the variable. Quit it and start it from a shell that has it.',
    ],
    documentation: ['https://cursor.com/docs/context/mcp'],
  }),
  // Windsurf: Cascade reads one file per user, and calls the URL serverUrl.
  fileKind({
    name: 'windsurf',
    title: 'Windsurf',
    file: jsonFile(everywhere('~/.codeium/windsurf/mcp_config.json'), {
      reference: envReference,
      urlName: 'serverUrl',
    }),
    signIn: BROWSER,
    steps: [
      SET_VARIABLE,
      'Put the snippet into ~/.codeium/windsurf/mcp_config.json.',
      'Open the MCP panel of Cascade and press Refresh.',
    ],
    troubleshooting: [
      'The server is not listed: the file is not valid JSON.',
      '401: Windsurf was started without the variable. Quit it and start it from a shell that has it.',
      'More than 100 tools in all: switch some off in the MCP panel.',
    ],
    documentation: ['https://docs.windsurf.com/windsurf/cascade/mcp'],
  }),
  // Cline: no variables in its file, and its own name for Streamable HTTP.
  fileKind({
    name: 'cline',
    title: 'Cline',
    file: jsonFile(everywhere('~/.cline/data/settings/cline_mcp_settings.json'), {
      http: { type: 'streamableHttp' },
      last: { disabled: false },
    }),
    steps: [
      'Click the MCP Servers icon, Configure, Configure MCP Servers: the file opens.',
      'Put the snippet into it, or its entry into the existing mcpServers.',
      REPLACE_PLACEHOLDER,
      'Save it: the server appears in the list with a green dot.',
    ],
    troubleshooting: [
      'The VS Code extension may keep its file in the global storage of VS Code; step 1 opens the right one.',
      'A red dot: click "Restart Server"; the message below it says why.',
      'A URL without "type" is treated as HTTP+SSE.',
    ],
    documentation: ['https://docs.cline.bot/mcp/mcp-overview'],
  }),
  // Continue: one file per server, with a list of entries; secrets come from .env files.
  fileKind({
    name: 'continue',
    title: 'Continue',
    file: {
      format: 'yaml',
      locations: everywhere('.continue/mcpServers/stagedoor.yaml'),
      section: ['mcpServers'],
      isList: true,
      preamble: { name: 'stagedoor', version: '1.0.0', schema: 'v1' },
      entry: (target) => {
        const { template: name } = target;
        if (target.transport === 'stdio') {
          return serverEntry(target, { reference: secretReference, stdio: { name, type: 'stdio' } });
        }
        const headers = unlessEmpty('headers', headersOf(target, secretReference));
        return {
          name,
          type: 'streamable-http',
          url: target.endpoint,
          ...unlessEmpty('requestOptions', headers),
        };
      },
    },
    steps: [
      'Save the snippet as .continue/mcpServers/stagedoor.yaml in the workspace.',
      (variable) =>
        `Put ${variable}=<the key> into .continue/.env of the workspace, or into ~/.continue/.env.`,
      'Reload the window and choose the agent mode: MCP works only there.',
    ],
    troubleshooting: [
      'The server is not listed: name, version and schema at the top of the file are required.',
      '401: the secret is not found; its name in .env has to be the one in the snippet.',
    ],
    documentation: [
      'https://docs.continue.dev/customize/deep-dives/mcp',
      'https://docs.continue.dev/reference',
    ],
  }),
  // Zed: context_servers in its settings, which may hold comments; no variables.
  fileKind({
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
    signIn: BROWSER,
    steps: [
      'Run "zed: open settings file" from the command palette.',
      'Put the entry of the snippet into context_servers.',
      REPLACE_PLACEHOLDER,
      'Open the settings of the Agent Panel: the dot beside the server turns green.',
    ],
    troubleshooting: [
      'A red dot: its tooltip has the reason; "zed: open log" has more.',
      'A remote server without headers makes Zed ask for a sign-in, which the gateway may have switched off.',
    ],
    documentation: ['https://zed.dev/docs/ai/mcp'],
  }),
  // JetBrains IDEs: AI Assistant takes the JSON in its settings, Junie from a file.
  fileKind({
    name: 'jetbrains',
    title: 'JetBrains AI Assistant and Junie',
    file: jsonFile(everywhere('~/.junie/mcp/mcp.json'), {}),
    steps: [
      'AI Assistant: open Settings, Tools, AI Assistant, Model Context Protocol (MCP), and click Add.',
      'Choose JSON (STDIO) or Streamable HTTP, and paste the snippet.',
      REPLACE_PLACEHOLDER,
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
  }),
  // Gemini CLI: mcpServers in its settings; the URL of Streamable HTTP is httpUrl.
  fileKind({
    name: 'gemini-cli',
    title: 'Gemini CLI',
    file: jsonFile(everywhere('~/.gemini/settings.json'), { reference: shellReference, urlName: 'httpUrl' }),
    signIn:
      'Type /mcp auth and the name of the server: the browser opens. Sign in to the gateway, and allow the access.',
    steps: [
      SET_VARIABLE,
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
  }),
  fileKind({
    name: 'codex',
    title: 'Codex',
    file: {
      format: 'toml',
      locations: everywhere('~/.codex/config.toml'),
      section: ['mcp_servers'],
      entry: (target) => {
        const variable = keyVariable(target);
        const written = withWrittenKey(target);
        if (written.transport === 'http') {
          const named = variable === undefined ? {} : { env_http_headers: { 'X-API-Key': variable } };
          return { url: written.endpoint, ...named, ...unlessEmpty('http_headers', headersOf(written)) };
        }
        const named = variable === undefined ? {} : { env_vars: [variable] };
        const { command, args } = written;
        return { command, args, ...named, ...unlessEmpty('env', environmentOf(written)) };
      },
    },
    signIn:
      'Run "codex mcp login" with the name of the server: the browser opens. Sign in to the gateway, and allow the access.',
    steps: [
      SET_VARIABLE,
      'Append the snippet to ~/.codex/config.toml; the command line and the IDE extension read the same file.',
      'Start codex and type /mcp: the server is listed with its tools.',
    ],
    troubleshooting: [
      '"codex mcp get NAME" shows how the entry was read.',
      'A server that starts slowly: set startup_timeout_sec in its table.',
      '"headers" and "bearer_token" are not read: a key belongs in env_http_headers, which names a variable.',
    ],
    documentation: ['https://developers.openai.com/codex/mcp'],
  }),
  // goose: extensions in its YAML file. Keys are named in env_keys and kept in the keyring, or come from the environment.
  fileKind({
    name: 'goose',
    title: 'goose',
    file: {
      format: 'yaml',
      locations: {
        macos: '~/.config/goose/config.yaml',
        windows: '%APPDATA%\\Block\\goose\\config\\config.yaml',
        linux: '~/.config/goose/config.yaml',
      },
      section: ['extensions'],
      entry: (target) => {
        const { template } = target;
        const variable = keyVariable(target);
        const common = { enabled: true, name: template, description: `${template} through stagedoor` };
        const secrets = { env_keys: variable === undefined ? [] : [variable], timeout: 300 };
        if (target.transport === 'http') {
          const headers = headersOf(target, shellReference);
          const { endpoint: uri } = target;
          return { ...common, type: 'streamable_http', uri, headers, envs: {}, ...secrets };
        }
        const { command: cmd, args } = target;
        const envs = environmentOf(withWrittenKey(target));
        return { ...common, type: 'stdio', cmd, args, envs, ...secrets };
      },
    },
    signIn: BROWSER,
    steps: [
      SET_VARIABLE,
      'Put the entry of the snippet into extensions of the file.',
      'Start a new session: "goose session" lists the extension, or says why it could not be started.',
    ],
    troubleshooting: [
      '"goose info -v" shows the file that is read and what is in it.',
      'The key is not found: goose looks for the names of env_keys in the keyring first; "goose configure" stores it there.',
      'SSE is no longer supported: the type must be streamable_http.',
    ],
    documentation: ['https://goose-docs.ai/docs/guides/config-files'],
  }),
];

function fileKind({
  file,
  transports = ['stdio', 'http'],
  ...kind
}: Omit<ConnectKind, 'file' | 'language' | 'snippet' | 'transports'> & {
  readonly file: ConfigFile;
  readonly transports?: ConnectKind['transports'];
}): ConnectKind {
  const snippet = (target: ConnectTarget) => configText(file, target);
  return { ...kind, transports, language: file.format, file, snippet };
}

/** A JSON file with a map from names of servers to entries of the usual form. */
function jsonFile(locations: FileLocations, form: EntryForm, section = ['mcpServers']): ConfigFile {
  return { format: 'json', locations, section, entry: (target) => serverEntry(target, form) };
}

interface EntryForm {
  /** Writes a reference to a variable. Without this function the key is a placeholder. */
  readonly reference?: (variable: string) => string;
  /** The first members of an entry of this transport, such as its type. */
  readonly stdio?: Readonly<Record<string, unknown>>;
  readonly http?: Readonly<Record<string, unknown>>;
  readonly last?: Readonly<Record<string, unknown>>;
  /** The name of the member with the URL. Default: `url`. */
  readonly urlName?: string;
}

/** The entry of most clients: command, args, env; or url, headers. */
function serverEntry(
  target: ConnectTarget,
  { reference, stdio, http, last, urlName = 'url' }: EntryForm,
): Readonly<Record<string, unknown>> {
  if (target.transport === 'http') {
    const headers = headersOf(target, reference);
    return { ...http, [urlName]: target.endpoint, ...unlessEmpty('headers', headers), ...last };
  }
  const { command, args } = target;
  const env = environmentOf(target, reference);
  return { ...stdio, command, args, ...unlessEmpty('env', env), ...last };
}

/** The content of a file that has only this server, without a line end. */
export function configText(file: ConfigFile, target: ConnectTarget): string {
  const { format, section, entry, isList, preamble } = file;
  const { template } = target;
  if (format === 'toml') return tomlTable([...section, template], entry(target));
  const servers = isList ? [entry(target)] : { [template]: entry(target) };
  const document = {
    ...preamble,
    ...Object(section.reduceRight<unknown>((inner, name) => ({ [name]: inner }), servers)),
  };
  return format === 'yaml' ? yaml(document, { lineWidth: 0 }).trimEnd() : JSON.stringify(document, null, 2);
}

/** A table of TOML: strings, numbers, booleans, lists of strings, and tables of strings, which are written inline. */
export function tomlTable(path: readonly string[], entry: Readonly<Record<string, unknown>>): string {
  return [`[${path.map(tomlKey).join('.')}]`, ...tomlMembers(entry)].join('\n');
}

function tomlMembers(table: object): string[] {
  return Object.entries(table).map(([name, value]) => `${tomlKey(name)} = ${tomlValue(value)}`);
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) return `{ ${tomlMembers(value).join(', ')} }`;
  return JSON.stringify(value); // the escapes of JSON are among those of TOML
}

function tomlKey(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}

/** The member, or nothing when its value is empty. */
function unlessEmpty<Name extends string>(
  name: Name,
  value: Readonly<Record<string, unknown>>,
): Partial<Record<Name, unknown>> {
  return Object.keys(value).length === 0 ? {} : ({ [name]: value } as Record<Name, unknown>);
}
