// What the specs of the stdio transport share: opening the fixture server, and servers of a few lines for what no
// fixture does.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Program } from '../../../src/programs/child-process.ts';
import { open, type StdioOptions } from '../../../src/transports/stdio/stdio.ts';
import type { Conversation, Transport } from '../../../src/transports/transport.ts';
import { instanceDefinition, openOptions } from '../../conformance/transport.ts';
import { inFolder } from '../../helpers/folder.ts';

/** Fields that a program and the definition of an instance share. */
type Command = Pick<Program, 'command' | 'args' | 'env'>;

/** Stops stubborn children quickly. */
const LADDER = { stdinEndMs: 300, terminateMs: 300 };

/** The fixture server with these flags. */
export function fixture(...flags: readonly string[]): Command {
  const script = fileURLToPath(new URL('../../fixtures/stdio-server.ts', import.meta.url));
  return { command: process.execPath, args: [script, ...flags], env: {} };
}

/**
 * A server of the legacy era that shakes hands and then runs `onRequest` for each request, with `message` and `say(message)` in scope;
 * `setup` runs first.
 */
export function scripted(onRequest: string, setup = ''): Command {
  const code = `
    const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
    ${setup}
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const message = JSON.parse(line);
      const { id, method, params } = message;
      if (method === 'initialize') {
        const serverInfo = { name: 'scripted', version: '1' };
        say({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }, jsonrpc: '2.0', id });
      } else if (method === 'server/discover') say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
      else if (id !== undefined) { ${onRequest} }
    });`;
  return node(code);
}

/** A program of this code. */
export function node(code: string): Command {
  return { command: process.execPath, args: ['-e', code], env: {} };
}

/** Counts the starts of programs that are marked with `counted`. */
export function withStarts(
  body: (counted: (program: Command) => Command, starts: () => Promise<number>) => Promise<void>,
): Promise<void> {
  return inFolder(async (folder) => {
    const [log, note] = [join(folder, 'log'), join(folder, 'note.cjs')];
    await writeFile(log, '');
    await writeFile(note, `require('fs').appendFileSync(${JSON.stringify(log)}, 'x')`);
    const counted = (program: Command) => ({ ...program, env: { NODE_OPTIONS: `--require ${note}` } });
    await body(counted, async () => (await readFile(log, 'utf8')).length);
  });
}

/** Opens a transport to the program. */
export function openStdio(
  { command, args, env }: Program,
  options: Partial<StdioOptions> = {},
): Promise<Transport> {
  const allOptions = { ...openOptions(), ladder: LADDER, ...options };
  return open(instanceDefinition({ command, args, env }), allOptions);
}

/** Opens a transport; `release` closes every conversation that was opened with it. */
export async function openReleasable(program: Program) {
  const transport = await openStdio(program);
  const opened: Promise<Conversation | undefined>[] = [];
  const openConversation = transport.openConversation.bind(transport);
  transport.openConversation = (...whose) => {
    const opening = openConversation(...whose);
    opened.push(opening.catch(() => undefined));
    return opening;
  };
  const release = async (): Promise<void> => {
    for (const conversation of await Promise.all(opened)) await conversation?.close();
  };
  return { transport, release };
}

/** Opens a transport, runs the body and closes it with every conversation that was opened, whatever happens. */
export async function withStdio(
  program: Program,
  body: (transport: Transport) => Promise<void>,
): Promise<void> {
  const { transport, release } = await openReleasable(program);
  try {
    await body(transport);
  } finally {
    await transport.close();
    await release();
  }
}
