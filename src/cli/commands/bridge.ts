// `stagedoor bridge`: an MCP server over standard input and output that passes everything to a template of a gateway. MCP
// clients that start programs start it; `stagedoor connect` writes the command for them.

import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { namedEnvironment, requestCredentials, withEnvironment } from '../accounts/credentials.ts';
import { DEFAULT_URLS } from '../background/daemon-files.ts';
import { URL_OPTION } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { namedUrl, seekGateway } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

export const bridge: CommandDefinition = {
  name: 'bridge',
  positionals: '<template>',
  summary: 'Serve a template over standard input and output, for MCP clients that start programs',
  options: {
    '--env <name>': 'Take URL and key from this entry of environments.json',
    ...URL_OPTION,
  },
  examples: ['bridge everything', 'bridge everything --url https://mcp.example.com'],
  run: async (input, terminal) => {
    // The gateway need not answer yet: a bridge waits for it.
    const name = input.text('env');
    const env =
      name === undefined ? terminal.env : withEnvironment(terminal.env, namedEnvironment(name, terminal.env));
    const named = namedUrl(input.text('url'), env);
    const url = named ?? (await seekGateway({ ...terminal, env }))?.url ?? DEFAULT_URLS[0];
    return runBridge(input.positional(0), url, () => requestCredentials(url, env).headers, terminal);
  },
};

/** Resolves with 0 when the input has ended, or a signal came. `credentials` are the headers as they are now. Standard output carries messages only. */
async function runBridge(
  template: string,
  url: string,
  credentials: () => Readonly<Record<string, string>>,
  terminal: Pick<Terminal, 'complain'>,
): Promise<number> {
  const [{ LineDecoder }, { Bridge }, { GatewayLink }] = await Promise.all([
    import('../../transports/stdio/line-decoder.ts'),
    import('../bridge/bridge.ts'),
    import('../bridge/gateway-link.ts'),
  ]);
  const log = (text: string) => terminal.complain(`stagedoor bridge ${template}: ${text}`);
  const link = new GatewayLink(`${url}/mcp/${encodeURIComponent(template)}`, credentials, log);
  const bridge = new Bridge({ link, write: writeLine, log });
  const lines = new LineDecoder({
    onLine: (line) => {
      if (isUtf8(line)) bridge.receive(line.toString('utf8'));
      else log('a line that is not UTF-8 was dropped');
    },
    onOversize: ({ bytes }) => log(`a line of ${bytes} bytes was dropped`),
  });
  const end = Promise.withResolvers<{ isImmediate: boolean }>();
  process.stdin.on('data', (chunk: Buffer) => lines.write(chunk));
  process.stdin.once('end', () => {
    lines.write(Buffer.from('\n')); // a last line may have no end
    end.resolve({ isImmediate: false });
  });
  process.stdin.once('error', () => end.resolve({ isImmediate: true }));
  process.stdout.once('error', () => end.resolve({ isImmediate: true })); // the client is gone
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.once(signal, () => end.resolve({ isImmediate: true }));
  }
  const how = await end.promise;
  process.stdin.destroy();
  await bridge.close(how);
  return 0;
}

async function writeLine(line: string): Promise<void> {
  if (process.stdout.write(`${line}\n`) || process.stdout.destroyed) return;
  await Promise.allSettled([once(process.stdout, 'drain')]); // when the client is gone, the bridge ends
}
