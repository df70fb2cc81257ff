// Runs client commands against a real gateway in this process, over real HTTP.

import { tmpdir } from 'node:os';
import { main } from '../../../src/cli/main.ts';
import { loadConfig } from '../../../src/config.ts';
import { type RunningServer, startServer } from '../../../src/server.ts';
import { recordingTerminal } from '../recording-terminal.ts';

/** What one command did. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface GatewayUnderTest {
  readonly server: RunningServer;
  readonly url: string;
  /** Runs one command line against this gateway. */
  run(...words: string[]): Promise<Outcome>;
  close(): Promise<void>;
}

/** Starts a gateway on a free port. */
export async function startGateway(): Promise<GatewayUnderTest> {
  const folder = tmpdir();
  const flags = { port: '0', host: '127.0.0.1', 'grace-seconds': '1' };
  const server = await startServer(loadConfig({ flags, env: {}, cwd: folder, readFile: () => undefined }));
  const url = String(server.urls[0]);
  return {
    server,
    url,
    run: async (...words) => runCommand(words, { STAGEDOOR_URL: url }, folder),
    close: () => server.close(),
  };
}

/** Runs one command line in this process. */
export async function runCommand(
  words: readonly string[],
  env: Record<string, string> = {},
  folder: string = tmpdir(),
): Promise<Outcome> {
  const terminal = recordingTerminal({ env, folder });
  const code = await main(words, terminal);
  return { code, out: terminal.printed.join('\n'), err: terminal.complaints.join('\n') };
}
