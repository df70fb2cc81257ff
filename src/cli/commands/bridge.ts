// `stagedoor bridge`: an MCP server over standard input and output that is a template of a gateway. What is started by
// clients that start programs; `stagedoor connect` writes the line for them.

import type { BridgeTarget } from '../bridge/run-bridge.ts';
import { CLIENT_OPTIONS } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import type { CommandInput } from '../command-input.ts';
import type { Terminal } from '../terminal.ts';

/** Row of the command table. */
export const bridge: CommandDefinition = {
  name: 'bridge',
  positionals: '<template>',
  summary:
    'Be an MCP server over standard input and output, for clients that start one, and pass all to a template',
  options: [
    { flags: '--env <name>', description: 'Take URL and key from this entry of environments.json' },
    ...CLIENT_OPTIONS.filter(({ flags }) => flags !== '--json'),
  ],
  examples: ['bridge everything', 'bridge everything --url https://mcp.example.com'],
  run: async (input, terminal) => {
    const { runBridge } = await import('../bridge/run-bridge.ts');
    return runBridge(input.positional(0), await targetOf(input, terminal), terminal);
  },
};

/** The gateway, and what it is sent. It need not answer yet: a bridge waits for it. */
async function targetOf(input: CommandInput, terminal: Terminal): Promise<BridgeTarget> {
  const [{ requestCredentials }, { gatewayUrls, seekGateway }, { usualUrls }] = await Promise.all([
    import('../accounts/request-credentials.ts'),
    import('../remote.ts'),
    import('../background/daemon-files.ts'),
  ]);
  const name = input.text('env');
  let { env } = terminal;
  if (name !== undefined) {
    const { namedEnvironment, withEnvironment } = await import('../accounts/environments-file.ts');
    env = withEnvironment(env, namedEnvironment(name, env));
  }
  const named = gatewayUrls(input.text('url'), env);
  const [first = ''] = named;
  const isNamed = input.text('url') !== undefined || Boolean(env.STAGEDOOR_URL);
  const found = isNamed ? undefined : await seekGateway(env, fetch, usualUrls(terminal));
  const url = found?.url ?? first;
  return { url, credentials: () => requestCredentials(url, env).headers };
}
