// The process that finds one server for all spec files of a run, and keeps a private one alive until the run ends. Started by
// supervised.ts; its answer is a line on its standard output. Its standard input ends with its owner, even when the owner is
// killed; then it stops the server and removes the files.
// Argument: name of the service.

import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answers, type PrivateServer, startPrivate, variableOf } from './private-server.ts';
import type { ServiceAnswer, ServiceName } from './supervised.ts';

const [name = 'redis'] = process.argv.slice(2) as [ServiceName];
const hasOwner = new Promise((resolve) => process.stdin.resume().once('close', resolve));
let folder: string | undefined;
let server: PrivateServer | undefined;
const found = await find().catch((thrown: unknown): ServiceAnswer => {
  return { error: `${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}` };
});
process.stdout.write(`${JSON.stringify(found)}\n`);
if (server !== undefined) await Promise.race([hasOwner, server.ended]);
await server?.stop();
// Not `rmSync`, whose retries do not wait: children of a killed server may still be writing.
if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 10 });
process.exit();

async function find(): Promise<ServiceAnswer> {
  const url = process.env[variableOf(name)];
  if (url) {
    await answers(name, url);
    return { url };
  }
  const started = await startPrivate(name, makeFolder);
  if (typeof started === 'string') return { skip: started };
  server = started;
  return { url: started.url };
}

/** Other users may enter it, because the servers do not run as root. */
function makeFolder(): string {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-service-'));
  chmodSync(folder, 0o711);
  return folder;
}
