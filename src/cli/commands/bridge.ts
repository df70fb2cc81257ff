// `stagedoor bridge`: a template of a gateway over standard input and output, for clients that start programs.

import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { type KeyHolder, namedEnvironment, requestCredentials } from '../accounts/request-credentials.ts';
import { trustUrl } from '../accounts/stored-tokens.ts';
import { DEFAULT_URLS, usualUrls } from '../background/daemon-files.ts';
import type { Command } from '../command.ts';
import { answeringUrl } from '../remote/answering-url.ts';
import { URL_OPTION } from '../remote/client-options.ts';
import { namedUrl } from '../remote/find-gateway.ts';
import type { Terminal } from '../terminal.ts';

export const bridge: Command = {
  name: 'bridge',
  positionals: '[template]',
  summary:
    'Serve a template, or all templates at once, over standard input and output, for MCP clients that start programs',
  options: {
    '--env <name>': 'Take URL and key from this entry of environments.json',
    ...URL_OPTION,
  },
  examples: ['bridge everything', 'bridge everything --url https://mcp.example.com'],
  run: async (input, terminal) => {
    // The gateway need not run yet: a bridge waits for it.
    input.refuseBoth('env', 'url');
    const { env, keySource } = namedEnvironment(input.text('env'), terminal.env);
    const url =
      namedUrl(input.text('url'), env) ??
      (await answeringUrl(terminal)) ??
      usualUrls(terminal)[0] ??
      DEFAULT_URLS[0];
    if (input.has('trust')) trustUrl(credentialsPath(env), url);
    return runBridge(input.positionals[0], url, {
      env,
      keySource,
      complain: terminal.complain,
      get folder() {
        return terminal.folder; // not before it is needed: it may have been removed
      },
    });
  },
};

/** The longest wait after a signal for a client to read the last lines, in ms. */
const WRITTEN_MS = 1_000;

/** Resolves with 0 when the input ends or a signal comes. Only messages go to standard output. */
async function runBridge(
  template: string | undefined,
  url: string,
  terminal: KeyHolder & Pick<Terminal, 'complain'>,
): Promise<number> {
  const [{ LineDecoder }, { Bridge }, { GatewayLink }] = await Promise.all([
    import('../../programs/line-decoder.ts'),
    import('../bridge/bridge.ts'),
    import('../bridge/gateway-link.ts'),
  ]);
  const log = (text: string) =>
    terminal.complain(`stagedoor bridge${template === undefined ? '' : ` ${template}`}: ${text}`);
  const endpoint = `${url}/mcp${template === undefined ? '' : `/${encodeURIComponent(template)}`}`;
  const link = new GatewayLink(endpoint, () => requestCredentials(url, terminal), log);
  const write = async (line: string) => {
    if (process.stdout.write(`${line}\n`) || process.stdout.destroyed) return;
    await Promise.allSettled([once(process.stdout, 'drain')]); // when the client is gone, the bridge ends
  };
  const bridge = new Bridge({ link, write, log });
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
  // A client that reads nothing leaves a write pending, which would keep the process alive.
  if (how.isImmediate) setTimeout(() => process.exit(0), WRITTEN_MS).unref();
  return 0;
}
