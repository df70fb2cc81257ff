// The process that looks for one server on behalf of all spec files of a run, and keeps a private one alive until the
// run is over. Started by helpers/services.ts, detached; its answer is a file in its folder. It dies with the owner of
// the run, even when that one is killed, and takes the server and its files along.
// Arguments: name of the service, folder, process id of the owner.

import { rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isKeeping, isOpen, keepingMark, removeFolder } from '../../runner/run-folder.ts';
import { isRunning } from '../is-running.ts';
import type { ServiceAnswer, ServiceName } from '../services.ts';
import { answers, findDefault, variableOf } from './find.ts';
import { type PrivateServer, startPrivate } from './private-server.ts';

const lookAgainMs = 100;

const [name = 'redis', folder = '', ownerPid = ''] = process.argv.slice(2) as [ServiceName, string, string];
let server: PrivateServer | undefined;
let found: ServiceAnswer;
try {
  found = await find();
} catch (thrown) {
  found = { error: `${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}` };
}
await writeFile(join(folder, 'answer.tmp'), JSON.stringify(found));
await rename(join(folder, 'answer.tmp'), join(folder, 'answer.json'));
if (server !== undefined) {
  while (isOpen(dirname(folder)) && isRunning(Number(ownerPid)) && server.isRunning()) {
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
  await server.stop();
  // Last, because of the mark in it: with that the owner stops waiting.
  await removeFolder(folder);
  if (!isRunning(Number(ownerPid))) await removeOrphan(dirname(folder));
}

async function find(): Promise<ServiceAnswer> {
  const url = process.env[variableOf(name)];
  if (url) {
    await answers(name, url);
    return { url };
  }
  const local = process.env.STAGEDOOR_PRIVATE_SERVICES === '1' ? undefined : await findDefault(name);
  if (local !== undefined) return { url: local };
  const started = await startPrivate(name, folder, () =>
    writeFile(join(folder, keepingMark), String(process.pid)),
  );
  if (typeof started === 'string') return { skip: started };
  server = started;
  return { url: started.url };
}

/** Removes the folder of a run whose owner was killed: the last supervisor does it. */
async function removeOrphan(run: string): Promise<void> {
  rmSync(join(run, 'open'), { force: true });
  if (!isKeeping(run)) await removeFolder(run);
}
