// The process of `stagedoor bridge`: standard input and output of the client, and the end with either of them.

import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { LineDecoder } from '../../transports/stdio/line-decoder.ts';
import type { Terminal } from '../terminal.ts';
import { Bridge } from './bridge.ts';
import { GatewayLink } from './gateway-link.ts';

/** The gateway, and what it is sent. */
export interface BridgeTarget {
  readonly url: string;
  /** The headers as they are now. */
  readonly credentials: () => Readonly<Record<string, string>>;
}

/** Resolves with 0 when the input has ended, or a signal came. Standard output carries messages only. */
export async function runBridge(
  template: string,
  { url, credentials }: BridgeTarget,
  terminal: Pick<Terminal, 'complain'>,
): Promise<number> {
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
  const end = Promise.withResolvers<{ isHasty: boolean }>();
  process.stdin.on('data', (chunk: Buffer) => lines.write(chunk));
  process.stdin.once('end', () => {
    lines.write(Buffer.from('\n')); // a last line may have no end
    end.resolve({ isHasty: false });
  });
  process.stdin.once('error', () => end.resolve({ isHasty: true }));
  process.stdout.once('error', () => end.resolve({ isHasty: true })); // the client is gone
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.once(signal, () => end.resolve({ isHasty: true }));
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
