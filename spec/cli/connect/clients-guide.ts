// docs/guides/clients.md: everything that `stagedoor connect` knows of each kind of client, for the template of the demo.

import { CONNECT_KINDS } from '../../../src/cli/connect/index.ts';
import type { Connection, ConnectKind, Transport } from '../../../src/cli/connect/kind.ts';

const url = 'http://127.0.0.1:8080';
const base = { template: 'everything', url, key: { variable: 'STAGEDOOR_API_KEY' } } as const;
const CONNECTIONS: Readonly<Record<Transport, Connection>> = {
  stdio: {
    ...base,
    ...{ transport: 'stdio', program: 'bridge', command: 'stagedoor', env: {} },
    args: ['bridge', 'everything', '--url', url],
  },
  http: { ...base, transport: 'http', endpoint: `${url}/mcp/everything` },
};

/** The whole document. */
export function clientsGuide(): string {
  const list = CONNECT_KINDS.map(({ title, name }) => `[${title}](#${anchorOf(title)}) (\`${name}\`)`);
  return `${[INTRODUCTION, `${list.join(' ·\n')}`, ...CONNECT_KINDS.map(section)].join('\n\n')}\n`;
}

const INTRODUCTION = `# Connecting MCP clients

<!-- Made from src/cli/connect/ by "node spec/cli/connect/clients-guide.spec.ts --write". -->

\`stagedoor connect <template>\` prints what is below for a template of your gateway; \`--llm <kind>\` does so for one client.

\`\`\`sh
stagedoor connect everything --llm claude-code            # the snippet, and what to do with it
stagedoor connect everything --llm claude-code --verify   # starts what the snippet starts, and lists the tools
stagedoor connect everything --llm claude-code --write    # puts it into the client's own file: shows the change, asks, keeps a copy
stagedoor connect everything --llm claude-code --remove   # takes it out again
\`\`\`

**Program or HTTP.** With \`--stdio\`, the default where a client can do it, the client starts a program: \`docker exec -i <container>\` for a
template that was found in a container, the registered command of a local one if a client can start it in the same way (no working
folder, no variables, no relative paths), else \`stagedoor bridge <template>\`, which passes everything to the gateway. The first two do
without the gateway: its limits, its failover and its accounts do not apply. With \`--http\` the client sends requests to the gateway.

**The key.** Snippets name the variable \`STAGEDOOR_API_KEY\` where the client can read one, and have \`YOUR_API_KEY\` where it cannot. \`--key -\`
reads a key from standard input and writes it into the snippet. Make one with \`stagedoor gateway create-api-key <name> --permissions
tools:call\`. Without a key the bridge uses the login of \`stagedoor gateway login\`, which ends after an hour.

**Several gateways.** \`--env NAME\` takes URL and key from \`environments.json\`, beside the file with the logins
(\`~/.config/stagedoor/\`, on Windows \`%APPDATA%\\stagedoor\\\`); programs get the name, and no key stands in the client's file:

\`\`\`json
{ "prod": { "url": "https://mcp.example.com", "key": "sd_..." }, "lab": { "url": "http://lab:8080", "key_variable": "LAB_KEY" } }
\`\`\`

\`--env KEY=VALUE\` adds a variable to the program. The snippets below have \`stagedoor\` as the command of the bridge; the command prints the
absolute paths that work on your machine.`;

function section(kind: ConnectKind): string {
  const { title, name, transports, file, troubleshooting, documentation } = kind;
  const snippets = transports.flatMap((transport) => [
    transport === 'http' ? 'With `--http`:' : 'With `--stdio`:',
    `\`\`\`${kind.language}\n${kind.snippet(CONNECTIONS[transport])}\n\`\`\``,
  ]);
  const [first] = transports;
  return [
    `## ${title}`,
    `\`stagedoor connect everything --llm ${name}\``,
    ...snippets,
    ...(file === undefined ? [] : [places(file.locations)]),
    kind
      .steps(CONNECTIONS[first])
      .map((step, index) => `${index + 1}. ${asText(step)}`)
      .join('\n'),
    `If it does not work:\n\n${troubleshooting.map((hint) => `- ${asText(hint)}`).join('\n')}`,
    `Its own documentation: ${documentation.map((page) => `<${page}>`).join(', ')}`,
  ].join('\n\n');
}

function places({ macos, windows, linux }: { macos: string; windows: string; linux: string }): string {
  return `| macOS | Windows | Linux |\n|---|---|---|\n| \`${macos}\` | \`${windows}\` | \`${linux}\` |`;
}

/** What looks like HTML is none. */
function asText(sentence: string): string {
  return sentence.replaceAll('<', '\\<').replaceAll('*', '\\*');
}

/** As GitHub makes it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
